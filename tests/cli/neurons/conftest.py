"""One load of the model and one located set for all commands."""

import functools

import pytest
from cli.neurons.running import neurons

from broca.models import load


@pytest.fixture(scope="session", autouse=True)
def _loaded_once():
    """The model is loaded once for all commands, and tables are wide enough for their words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broca.runs.setup.load", functools.cache(load))
        patch.setenv("COLUMNS", "200")
        yield


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """Located on few items."""
    folder = tmp_path_factory.mktemp("neurons")
    neurons("locate", "reference", "--task", "capitals", "--items", 6, "--out", folder)
    return folder
