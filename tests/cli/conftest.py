"""Fixtures of all commands: models that are loaded once, and a finished run."""

import functools
from shutil import copytree

import pytest
from cli.running import SMALL, broca

from broca.models import load

_load = functools.cache(load)


@pytest.fixture(scope="module", autouse=True)
def _loaded_once():
    """A model is loaded once for all commands with the same options, and tables are wide."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broca.runs.session.load", _load)
        patch.setenv("COLUMNS", "200")
        yield


@pytest.fixture(scope="session")
def finished_command(tmp_path_factory):
    """A small run of `broca localize --json`: the completed process and its out folder."""
    out = tmp_path_factory.mktemp("run") / "out"
    return broca(*SMALL, "--out", out, "--json"), out


@pytest.fixture
def finished(finished_command, tmp_path):
    """A copy of the out folder of `finished_command`, which a test may change."""
    return copytree(finished_command[1], tmp_path / "finished")
