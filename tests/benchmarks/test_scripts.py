"""No script of `benchmarks/` names what the package no longer has."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


def test_the_scripts_are_found():
    """Those that RESULTS.md names."""
    assert {"engine", "methods", "workers"} <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_imported(name, monkeypatch):
    """Each finds all that it imports; `main` is called by name alone."""
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location(f"script_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # data classes look their module up
    spec.loader.exec_module(module)
    assert module.__doc__
