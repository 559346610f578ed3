"""One located set for all commands."""

import pytest
from cli.neurons.running import neurons


@pytest.fixture(scope="module", autouse=True)
def _wide():
    """Tables are wide enough for their words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        yield


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """Located on few items."""
    folder = tmp_path_factory.mktemp("neurons")
    neurons("locate", "reference", "--task", "capitals", "--items", 6, "--out", folder)
    return folder
