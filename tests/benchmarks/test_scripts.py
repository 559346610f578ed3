"""The scripts of `benchmarks/` can be imported."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_imported(name, monkeypatch):
    """Everything that a script imports exists, and the script has a docstring."""
    monkeypatch.syspath_prepend(FOLDER)
    assert runpy.run_path(str(FOLDER / f"{name}.py"))["__doc__"]
