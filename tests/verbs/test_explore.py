"""`broca.explore` serves a page for a loaded model or for a finished run."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from results.samples import make_result

import broca
from broca.cli.main import app
from broca.errors import BadInput, UnknownName
from broca.explorer.measurer import ITEMS
from broca.options import LocalizeOptions
from broca.results.base import ModelInfo
from broca.runs.folder import RunFolder
from broca.runs.workspace import Workspace


def test_a_loaded_model_is_served_and_left_as_it_was(planted):
    """The page is served until it is closed, and the model stays intact."""
    with broca.explore(planted, port=0) as page:
        with urlopen(page.url + "api/model", timeout=30) as reply:
            assert json.load(reply)["model"] == "planted"
        assert "sorting" in page.explorer.measurer.tasks()
    planted.require_intact()
    with pytest.raises(OSError, match=r"refused|urlopen"):
        urlopen(page.url, timeout=5)


def test_a_run_brings_its_model_and_set(planted, tmp_path):
    """A run gives its model, its selection and its tasks, unless tasks are named."""
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


def test_a_kept_run_brings_its_folder_of_tasks_and_its_components(tmp_path):
    """A run folder gives the task folder and the kinds of components of its command."""
    sources, out = tmp_path / "tasks", tmp_path / "out"
    for folder in (sources, out):
        folder.mkdir()
    data = sources / "train.jsonl"
    asked = [(x, n) for x in "acdefghi" for n in range(16)]
    data.write_text("".join(f'{{"q": "{n}: sort b {x} =", "a": " {x} b"}}\n' for x, n in asked))
    (sources / "mine.yaml").write_text(
        f"task: mine\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\n"
        "test_split: test\noutput_type: generate_until\n"
        'doc_to_text: "{{q}}"\ndoc_to_target: "{{a}}"\n'
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    RunFolder.claim(
        out, verb="localize", command=["broca", "localize"],
        options=LocalizeOptions.of(
            {
                "model": "reference-small", "task": "mine", "include_path": sources,
                "components": "heads+mlp",
            }
        ),
    )  # fmt: skip
    scores = {"mine": 0.9}
    make_result(
        model=ModelInfo("reference-small", "f", "", 4, 12, 3), task="mine", others=(),
        baseline=scores, after=scores, selected=("L0M", "L1H2"),
    ).save(out)  # fmt: skip
    with broca.explore(out, port=0) as page:
        assert page.explorer.model.kinds == "heads+mlp"
        assert page.explorer.score("mine", ["L0M"])["items"] == ITEMS


def test_what_cannot_be_served_is_refused(planted):
    """A public host, an unknown task and a journal in memory are refused before loading."""
    with pytest.raises(BadInput, match=r"`host` 0\.0\.0\.0 is open to other machines"):
        broca.explore("no-such-model", host="0.0.0.0")
    with pytest.raises(UnknownName, match="task 'sortign' is unknown; did you mean 'sorting'"):
        broca.explore("no-such-model", tasks="sorting,sortign")
    with Workspace() as space, pytest.raises(BadInput, match="`journal` must be a file"):
        broca.explore(planted, journal=space)


def test_the_space_serves_the_page_where_the_hub_looks_for_it():
    """The Space's command parses, and its port is that of the Space's settings."""
    space = Path(__file__).parents[2] / "space"
    settings = yaml.safe_load((space / "README.md").read_text().split("---")[1])
    assert settings["sdk"] == "docker"
    (line,) = re.findall(r"^CMD (\[.*\])$", (space / "Dockerfile").read_text(), re.MULTILINE)
    broca_, *words = json.loads(line)
    assert broca_ == "broca"
    _, bound, _ = app.parse_args(words)
    assert (bound.args[0].host, bound.args[0].public) == ("0.0.0.0", True)
    assert bound.args[0].port == settings["app_port"]
