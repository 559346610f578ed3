"""The scripts of `benchmarks/` can be imported."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_imported(name, monkeypatch):
    """Everything that a script imports exists, and the script has a docstring."""
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location(f"script_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # data classes look their module up
    spec.loader.exec_module(module)
    assert module.__doc__
