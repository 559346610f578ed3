"""The arrows between the rooms point one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "broca"

ALLOWED = {
    "errors": set(),
    "components": {"errors"},
    "hub": set(),
    "plan": set(),
    "process": set(),
    "designs": {"errors"},
    "recovery": {"errors"},
    "models": {"components", "errors", "hub"},
    "sandbox": {"errors"},
    "tasks": {"errors", "hub", "sandbox"},
    "engine": {"models", "tasks", "errors"},
    "files": {"errors"},
    "lines": {"errors", "files"},
    "journal": {"errors", "plan"},
    "interrupts": {"errors"},
    "outfolder": {"errors", "files"},
    "executors": {"engine", "errors", "hub", "journal", "models", "plan", "process", "tasks"},
    "searches": {"designs", "recovery", "plan", "errors"},
    "lm": {"engine", "models", "tasks", "errors"},
    "evidence": {"errors"},
    "verify": {"components", "errors", "evidence", "plan", "tasks"},
    "runs": {
        "plan",
        "engine",
        "errors",
        "executors",
        "interrupts",
        "journal",
        "models",
        "searches",
        "tasks",
    },
    "typed": set(),
    "result": {"errors", "evidence", "typed"},
    "charted": {"errors", "evidence", "result", "typed"},
    "charts": {"charted", "components", "recovery"},
    "shared": {"charts", "components", "verify"},
    "interactions": {"errors", "plan", "result"},
    "rerun": {
        "components",
        "errors",
        "journal",
        "outfolder",
        "result",
        "searches",
    },
    "refitting": {
        "components",
        "errors",
        "files",
        "journal",
        "outfolder",
        "recovery",
        "result",
        "searches",
    },
    "estimating": {
        "engine",
        "errors",
        "executors",
        "models",
        "plan",
        "runs",
        "searches",
        "tasks",
        "tasksets",
        "verify",
    },
    "report": {"charted", "evidence", "result", "stressed"},
    "neurons": {
        "components",
        "designs",
        "engine",
        "errors",
        "executors",
        "hub",
        "models",
        "plan",
        "recovery",
        "searches",
        "tasks",
    },
    "testing": {"plan"},
    "published": {"errors"},
    "stressed": {"errors", "evidence"},
    "reproduce": {
        "api",
        "charting",
        "charts",
        "errors",
        "evidence",
        "files",
        "models",
        "provenance",
        "published",
        "report",
        "runs",
        "searches",
        "tasks",
        "tasksets",
        "verify",
        "workbench",
    },
    "stress": {"errors", "evidence", "lines", "models", "provenance", "stressed", "verify"},
    "bench": {
        "designs",
        "engine",
        "errors",
        "executors",
        "files",
        "lines",
        "models",
        "plan",
        "provenance",
        "report",
        "runs",
        "searches",
        "tasks",
        "tasksets",
        "testing",
        "typed",
        "verify",
        "workbench",
    },
    "tasksets": {"errors", "models", "tasks"},
    "margins": {"engine", "errors", "executors", "plan", "tasksets"},
    "provenance": {"engine", "evidence", "models", "result", "verify"},
    "workbench": {"engine", "executors", "models", "runs", "tasks", "tasksets", "verify"},
    "charting": {
        "charted",
        "charts",
        "engine",
        "errors",
        "files",
        "margins",
        "models",
        "plan",
        "provenance",
        "recovery",
        "report",
        "result",
        "runs",
        "searches",
        "tasks",
        "tasksets",
        "verify",
        "workbench",
    },
    "verifying": {
        "api",
        "engine",
        "errors",
        "evidence",
        "models",
        "provenance",
        "published",
        "runs",
        "tasks",
        "tasksets",
        "verify",
        "workbench",
    },
}
"""What each room may import of broca. `api` and `cli` wire the rooms together."""

HEAVY = {
    "components": {"torch", "transformers", "lm_eval", "sklearn"},
    "plan": {"torch", "transformers", "lm_eval", "sklearn"},
    "designs": {"torch", "transformers", "lm_eval", "sklearn"},
    "recovery": {"torch", "transformers", "lm_eval", "sqlite3"},
    "searches": {"torch", "transformers", "lm_eval", "sqlite3"},
    "evidence": {"torch", "transformers", "lm_eval", "sklearn", "plotly"},
    "charted": {"torch", "transformers", "lm_eval", "sklearn", "plotly"},
    "charts": {"torch", "transformers", "lm_eval", "sqlite3"},
    "report": {"torch", "transformers", "lm_eval", "sklearn"},
    "sandbox": {"torch", "transformers", "lm_eval", "sklearn", "numpy"},
    "journal": {"torch", "transformers", "lm_eval", "sklearn"},
    "rerun": {"torch", "transformers", "lm_eval"},
    "refitting": {"torch", "transformers", "lm_eval"},
    "outfolder": {"torch", "transformers", "lm_eval", "sklearn"},
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


def rooms():
    """Every room with its files."""
    for room in sorted(ALLOWED):
        place = SOURCE / room
        yield room, sorted(place.rglob("*.py")) if place.is_dir() else [SOURCE / f"{room}.py"]


@pytest.mark.parametrize(("room", "files"), list(rooms()), ids=[room for room, _ in rooms()])
def test_room_imports_only_what_lies_before_it(room, files):
    """Neither broca's own rooms nor heavy libraries are imported against the flow."""
    assert files
    for file in files:
        for name in imports_of(file):
            parts = name.split(".")
            if parts[0] == "broca" and len(parts) > 1:
                assert parts[1] in ALLOWED[room] | {room}, f"{file} imports {name}"
            assert parts[0] not in HEAVY.get(room, set()), f"{file} imports {name}"


def test_every_room_is_listed():
    """A new room must say what it may import."""
    present = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert present - {"__init__", "__main__", "api", "cli"} == set(ALLOWED)


def test_help_loads_nothing_heavy():
    """`broca --help` answers at once: no torch, no transformers, no lm-eval."""
    code = (
        "import sys; import broca.cli.main; "
        "print([m for m in ('torch','transformers','lm_eval','sklearn','plotly','datasets') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_stay_what_they_are():
    """No public function shares its name with a room, which would take its place once imported."""
    import broca

    rooms_here = {path.stem for path in SOURCE.iterdir()}
    assert not set(broca.__all__) & rooms_here
    assert callable(broca.verify_heads)
    assert callable(broca.verify_heads)
