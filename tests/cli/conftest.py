"""A finished run of the command line, shared by its tests."""

from shutil import copytree

import pytest
from cli.running import SMALL, broca


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
