"""Imports between the packages of broca go one way."""

import ast
import graphlib
from importlib import import_module
from pathlib import Path

import pytest

import broca

SOURCE = Path(__file__).parent.parent / "src" / "broca"

ORDER = (
    "errors", "limits", "known_paths", "sources", "plugins", "components", "measurement", "designs",
    "testing", "options", "results", "recovery", "searches", "models", "tasks", "engine", "store",
    "executors", "published", "verification", "runs", "atlases", "stress_tests", "neurons",
    "comparisons", "explorer", "exports", "verbs", "studies", "integrations", "cli",
)  # fmt: skip
"""The packages and modules of broca; each imports only those before it."""


def imports_of(file, *, of_types=True):
    """Yields the dotted names of all imports in a file, those within functions included.

    Without `of_types` those that only a type checker reads are left out.
    """
    nodes = [ast.parse(file.read_text())]
    for node in nodes:
        typed = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if of_types or not typed:
            nodes.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def home_of(name):
    """Returns the package of a dotted name; public names of `broca` are looked up."""
    parts = name.split(".")
    return broca._HOME[parts[1]].split(".")[1] if parts[1] in broca._HOME else parts[1]


def files_of(package):
    """Returns the files of a package, or the file of a single module."""
    place = SOURCE / package
    return sorted(place.rglob("*.py")) if place.is_dir() else [SOURCE / f"{package}.py"]


@pytest.mark.parametrize("package", ORDER)
def test_package_imports_only_those_before_it(package):
    """A package imports itself and the packages before it in `ORDER`."""
    before = {*ORDER[: ORDER.index(package)], package}
    for file in files_of(package):
        for name in imports_of(file):
            if name.startswith("broca."):
                assert home_of(name) in before, f"{file} imports {name}"


def strings_of(file):
    """Returns the texts that a file may give to `import_module`, if it calls it."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return texts if "import_module" in names else set()


PATHS = {file: file.relative_to(SOURCE.parent).with_suffix("") for file in SOURCE.rglob("*.py")}
MODULES = {".".join(path.parts).removesuffix(".__init__"): file for file, path in PATHS.items()}
"""The files of broca by the names of their modules."""


def test_only_packages_import_by_name():
    """A module of broca is imported as text only by an `__init__`, which loads it on first use."""
    for file in MODULES.values():
        assert file.name == "__init__.py" or not strings_of(file) & {*MODULES} - {"broca"}, file


def test_files_import_each_other_in_no_circle():
    """No file imports itself by way of others, imports in functions and by name counted."""
    graph = {}
    for name, file in MODULES.items():
        imported = {
            module if module in MODULES else module.rpartition(".")[0]
            for module in imports_of(file, of_types=False)
        }
        texts = strings_of(file)
        others = MODULES.keys() - {"broca"}
        by_name = {each for each in others if {each, each.removeprefix(f"{name}.")} & texts}
        graph[name] = ((imported | by_name) & set(MODULES)) - {name}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


def test_every_package_has_its_place():
    """`ORDER` has every package and module of broca."""
    present = {name.split(".")[1] for name in MODULES if name != "broca"}
    assert present - {"__main__"} == set(ORDER)


def test_public_names_stay_what_they_are():
    """No module takes the name of a public function, which it would replace once imported."""
    for name in sorted(MODULES):
        if not name.endswith("__main__"):
            import_module(name)
    for place, names in ((broca, broca.__all__), (broca.neurons, broca.neurons.__all__)):
        assert all(callable(getattr(place, name)) for name in names)


def test_the_stub_has_the_public_names():
    """Type checkers read each public name from the module that defines it."""
    stated = set(imports_of(SOURCE / "__init__.pyi")) - {"broca.neurons"}
    assert stated == {f"{module}.{name}" for name, module in broca._HOME.items()}
    stated = set(imports_of(SOURCE / "neurons" / "__init__.pyi"))
    assert stated == {f"broca.verbs.neurons.{name}" for name in broca.neurons.__all__}
