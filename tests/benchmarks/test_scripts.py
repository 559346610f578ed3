"""The scripts of `benchmarks/` can be imported, and leave settings of the environment alone."""

import importlib.util
import os
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


def test_what_the_environment_says_is_not_overwritten(script, monkeypatch):
    """Progress bars and warnings are turned off where the environment says nothing of them."""
    monkeypatch.setenv("TQDM_DISABLE", "0")
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    script("prepared").prepare()
    assert (os.environ["TQDM_DISABLE"], os.environ["TRANSFORMERS_VERBOSITY"]) == ("0", "info")
    del os.environ["TQDM_DISABLE"], os.environ["TRANSFORMERS_VERBOSITY"]
    script("prepared").prepare()
    assert (os.environ["TQDM_DISABLE"], os.environ["TRANSFORMERS_VERBOSITY"]) == ("1", "error")
