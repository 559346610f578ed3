"""The arrows between the rooms point one way."""

import ast
import subprocess
import sys
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
            parts = name.split(".")
            if parts[0] == "broca" and len(parts) > 1:
                assert parts[1] in before, f"{file} imports {name}"


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
