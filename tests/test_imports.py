"""Imports between the packages of broca go one way."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "broca"

ORDER = (
    "errors",
    "components",
    "measurement",
    "designs",
    "testing",
    "options",
    "results",
    "recovery",
    "searches",
    "models",
    "tasks",
    "engine",
    "journal",
    "executors",
    "published",
    "verification",
    "runs",
    "atlases",
    "stress_tests",
    "neurons",
    "comparisons",
    "reports",
    "explorer",
    "exports",
    "verbs",
    "studies",
    "integrations",
    "cli",
)
"""The packages and modules of broca; each imports only those before it."""

HEAVY = {
    "components": {"torch", "transformers", "lm_eval", "sklearn"},
    "measurement": {"torch", "transformers", "lm_eval", "sklearn"},
    "designs": {"torch", "transformers", "lm_eval", "sklearn"},
    "recovery": {"torch", "transformers", "lm_eval", "sqlite3"},
    "searches": {"torch", "transformers", "lm_eval", "sqlite3"},
    "results": {"torch", "transformers", "lm_eval", "sklearn", "matplotlib"},
    "atlases": {"torch", "transformers", "lm_eval", "sqlite3"},
    "reports": {"torch", "transformers", "lm_eval", "sklearn", "plotly"},
    "journal": {"torch", "transformers", "lm_eval", "sklearn"},
}


def imports_of(file):
    """Yields the dotted names of all imports in a file, those within functions included."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative import"
            if node.module == "broca":
                yield from (f"broca.{alias.name}" for alias in node.names)
            else:
                yield node.module


def home_of(name):
    """Returns the package of a dotted name; public names of `broca` are looked up."""
    import broca

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


PUBLIC = {
    "broca",
    "broca.atlases",
    "broca.designs",
    "broca.errors",
    "broca.measurement",
    "broca.models",
    "broca.options",
    "broca.published",
    "broca.results.pages",
    "broca.results",
    "broca.runs",
    "broca.searches",
    "broca.tasks",
    "broca.testing",
    "broca.verification",
}
"""What a study may import from, as any user may: names in `__all__` of `broca` and its packages,
and names without a leading underscore of single modules."""


@pytest.mark.parametrize("file", files_of("studies"), ids=lambda file: file.stem)
def test_studies_use_the_public_api_alone(file):
    """A study imports public names only, as a package outside of broca would."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("broca.") for alias in node.names), file
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "broca":
            if node.module.startswith("broca.studies"):
                continue
            assert node.module in PUBLIC, f"{file} imports from {node.module}"
            module = import_module(node.module)
            public = getattr(module, "__all__", None)
            for alias in node.names:
                if public is None:
                    assert not alias.name.startswith("_"), f"{file} imports {alias.name}"
                else:
                    packages = {f"{node.module}.{alias.name}"} & PUBLIC
                    assert alias.name in public or packages, f"{file} imports {alias.name}"


@pytest.mark.parametrize("package", HEAVY)
def test_package_keeps_heavy_libraries_out(package):
    """No file of a package imports a library that `HEAVY` names for it."""
    assert files_of(package)
    for file in files_of(package):
        for name in imports_of(file):
            assert name.split(".")[0] not in HEAVY[package], f"{file} imports {name}"


def test_every_package_has_its_place():
    """`ORDER` has every package and module of broca."""
    present = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert present - {"__init__", "__main__"} == set(ORDER)


def test_command_line_loads_nothing_heavy():
    """Importing the command line loads neither torch nor another heavy library."""
    code = (
        "import sys; import broca.cli.main; "
        "print([m for m in ('torch','transformers','lm_eval','sklearn','matplotlib','datasets') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_stay_what_they_are():
    """No public name is the name of a module, which would replace it once imported."""
    import broca

    modules = {path.stem for path in SOURCE.iterdir()}
    assert not set(broca.__all__) & modules
    for _ in range(2):
        assert all(callable(getattr(broca, name)) for name in broca.__all__)


@pytest.mark.parametrize(
    ("old", "new"),
    [("verify_heads", "verify"), ("Result", "Localization"), ("Evidence", "Verification")],
)
def test_renamed_names_warn_for_one_version(old, new):
    """An old name warns, names the new one and gives the same object."""
    import broca

    with pytest.warns(DeprecationWarning, match=f"use broca.{new}"):
        assert getattr(broca, old) is getattr(broca, new)
