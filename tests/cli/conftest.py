"""What all commands share: models that are loaded once, and a finished run."""

import functools
from shutil import copytree

import pytest
from cli.running import SMALL, broca

from broca.models import load

_load = functools.cache(load)


@pytest.fixture(scope="module", autouse=True)
def _loaded_once():
    """A model is loaded once for all commands that name it with the same options."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broca.runs.setup.load", _load)
        yield


@pytest.fixture(scope="session")
def finished_command(tmp_path_factory):
    """One run of the command with --json, small: what it printed, and its out folder."""
    out = tmp_path_factory.mktemp("run") / "out"
    done = broca(*SMALL, "--out", out, "--json")
    return done, out


@pytest.fixture
def finished(finished_command, tmp_path):
    """A copy of that run's folder, which a test may change."""
    return copytree(finished_command[1], tmp_path / "finished")
