"""The arrows between the rooms point one way."""

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
"""The rooms from the ground up: each imports only those that stand before it."""

HEAVY = {
    "components": {"torch", "transformers", "lm_eval", "sklearn"},
    "measurement": {"torch", "transformers", "lm_eval", "sklearn"},
    "designs": {"torch", "transformers", "lm_eval", "sklearn"},
    "recovery": {"torch", "transformers", "lm_eval", "sqlite3"},
    "searches": {"torch", "transformers", "lm_eval", "sqlite3"},
    "results": {"torch", "transformers", "lm_eval", "sklearn", "matplotlib"},
    "atlases": {"torch", "transformers", "lm_eval", "sqlite3"},
    "reports": {"torch", "transformers", "lm_eval", "sklearn", "plotly"},
    "tasks/sandbox": {"torch", "transformers", "lm_eval", "sklearn", "numpy"},
    "journal": {"torch", "transformers", "lm_eval", "sklearn"},
}


def imports_of(file):
    """Dotted names of everything that a file imports, wherever in the file."""
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
    """The room of a dotted name; a public name of `broca` itself counts as its module's."""
    import broca

    parts = name.split(".")
    return broca._HOME[parts[1]].split(".")[1] if parts[1] in broca._HOME else parts[1]


def files_of(room):
    """The files of a room: a folder's, or one."""
    place = SOURCE / room
    return sorted(place.rglob("*.py")) if place.is_dir() else [SOURCE / f"{room}.py"]


@pytest.mark.parametrize("room", ORDER)
def test_room_imports_only_what_stands_before_it(room):
    """The arrows between the rooms point one way."""
    before = {*ORDER[: ORDER.index(room)], room}
    for file in files_of(room):
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
    "broca.reports",
    "broca.results",
    "broca.runs",
    "broca.searches",
    "broca.tasks",
    "broca.testing",
    "broca.verification",
}
"""What a study may import from, as any user may: `broca`, its rooms by the names in their
`__all__`, and the loose modules by the names that do not begin with an underscore."""


@pytest.mark.parametrize("file", files_of("studies"), ids=lambda file: file.stem)
def test_studies_use_the_public_api_alone(file):
    """No study reaches into a module of a room; another package could hold it as well."""
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
                    rooms = {f"{node.module}.{alias.name}"} & PUBLIC
                    assert alias.name in public or rooms, f"{file} imports {alias.name}"


@pytest.mark.parametrize("room", HEAVY)
def test_room_keeps_heavy_libraries_out(room):
    """What a room does not need is not loaded with it."""
    assert files_of(room)
    for file in files_of(room):
        for name in imports_of(file):
            assert name.split(".")[0] not in HEAVY[room], f"{file} imports {name}"


def test_every_room_has_its_place():
    """A new room must say where it stands."""
    present = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert present - {"__init__", "__main__"} == set(ORDER)


def test_help_loads_nothing_heavy():
    """`broca --help` answers at once: no torch, no transformers, no lm-eval."""
    code = (
        "import sys; import broca.cli.main; "
        "print([m for m in ('torch','transformers','lm_eval','sklearn','matplotlib','datasets') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_stay_what_they_are():
    """No public name is that of a room, which would take its place once imported."""
    import broca

    rooms_here = {path.stem for path in SOURCE.iterdir()}
    assert not set(broca.__all__) & rooms_here
    for _ in range(2):
        assert all(callable(getattr(broca, name)) for name in broca.__all__)


@pytest.mark.parametrize(
    ("old", "new"),
    [("verify_heads", "verify"), ("Result", "Localization"), ("Evidence", "Verification")],
)
def test_renamed_names_warn_for_one_version(old, new):
    """They are the new ones."""
    import broca

    with pytest.warns(DeprecationWarning, match=f"use broca.{new}"):
        assert getattr(broca, old) is getattr(broca, new)
