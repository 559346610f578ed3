"""`explore` serves a page on a model that is loaded, or on what a run found."""

import json
from urllib.request import urlopen

import pytest

import broca
from broca.errors import BadInput
from broca.runs.workspace import Workspace


def test_a_loaded_model_is_served_and_left_as_it_was(planted):
    """Until the page is closed."""
    with broca.explore(planted, port=0) as page:
        with urlopen(page.url + "api/model", timeout=30) as reply:
            assert json.load(reply)["model"] == "planted"
        assert "sorting" in page.explorer.measurer.tasks()
    planted.require_intact()
    with pytest.raises(OSError, match=r"refused|urlopen"):
        urlopen(page.url, timeout=5)


def test_a_run_brings_its_model_and_set(planted, tmp_path):
    """And its tasks, unless others are named."""
    result = broca.localize(
        planted, task="sorting", others="reversing", method="one-shot", rows=970, items=10, k=2,
        verify=False,
    )  # fmt: skip
    result.save(tmp_path)
    with broca.explore(tmp_path, port=0) as page:
        about = page.explorer.describe()
        assert about["sets"] == {"needed for sorting": list(result.selected)}
        assert page.explorer.measurer.tasks() == ("sorting", "reversing")
    with broca.explore(tmp_path, tasks="capitals", port=0) as page:
        assert page.explorer.measurer.tasks() == ("capitals",)


def test_what_cannot_be_served_is_refused(planted):
    """Before the model is loaded."""
    with pytest.raises(BadInput, match=r"`host` 0\.0\.0\.0 is open to other machines"):
        broca.explore("no-such-model", host="0.0.0.0")
    with Workspace() as space, pytest.raises(BadInput, match="`journal` must be a file"):
        broca.explore(planted, journal=space)
