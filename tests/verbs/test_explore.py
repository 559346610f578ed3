"""`explore` serves a page on a model that is loaded, or on what a run found."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

import broca
from broca.cli.main import app
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


def test_the_space_serves_the_page_where_the_hub_looks_for_it():
    """Its command is one that `broca` has, on the port of its settings."""
    space = Path(__file__).parents[2] / "space"
    settings = yaml.safe_load((space / "README.md").read_text().split("---")[1])
    assert settings["sdk"] == "docker"
    (line,) = re.findall(r"^CMD (\[.*\])$", (space / "Dockerfile").read_text(), re.MULTILINE)
    broca_, *words = json.loads(line)
    assert broca_ == "broca"
    _, bound, _ = app.parse_args(words)
    assert (bound.arguments["host"], bound.arguments["public"]) == ("0.0.0.0", True)
    assert bound.arguments["port"] == settings["app_port"]
