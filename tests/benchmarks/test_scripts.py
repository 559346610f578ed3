"""No script of `benchmarks/` names what the package no longer has."""

from pathlib import Path

import pytest

SCRIPTS = sorted(path.stem for path in (Path(__file__).parents[2] / "benchmarks").glob("*.py"))


def test_the_scripts_are_found():
    """Those that RESULTS.md names."""
    assert {"engine", "methods", "workers"} <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_imported(script, name):
    """Each finds all that it imports; `main` is called by name alone."""
    assert script(name).__doc__
