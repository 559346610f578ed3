"""`broca.explore` serves a page for a loaded model or for a finished run."""

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from harness_tasks import write_task
from results.samples import make_result
from verbs.run_folders import localize_into

import broca
from broca.cli.main import app
from broca.errors import BadInput, UnknownName
from broca.explorer.measurer import ITEMS


def test_a_loaded_model_is_served_and_left_as_it_was(planted):
    """The page is served until it is closed, and the model stays intact."""
    with broca.explore(planted, port=0) as page:
        with urlopen(page.url + "api/model", timeout=30) as reply:
            assert json.load(reply)["model"] == "planted"
        assert "sorting" in page.explorer.measurer.tasks()
    planted.require_intact()
    with pytest.raises(OSError, match=r"refused|urlopen"):
        urlopen(page.url, timeout=5)


@pytest.mark.long
def test_a_run_brings_its_model_set_and_tasks(tmp_path):
    """A run folder gives model, components, selection and tasks, unless tasks are named."""
    asked = [(f"{n}: sort b {letter} =", f" {letter} b") for letter in "acdef" for n in range(16)]
    documents = [{"question": question, "answer": answer} for question, answer in asked]
    write_task(tmp_path, "mine", documents, metric_list=[{"metric": "exact_match"}])
    out = tmp_path / "out"
    result = localize_into(
        out, model="reference-small", task="mine", include_path=tmp_path, others=["capitals"],
        components="heads+mlp", method="one-shot", items=4, verify=False,
    )  # fmt: skip
    replace(result, selected=("L0M", "L1H2")).save(out, replace=True)
    with broca.explore(out, include_path=tmp_path, port=0) as page:
        assert page.explorer.describe()["sets"] == {"selected for mine": ["L0M", "L1H2"]}
        assert page.explorer.measurer.tasks() == ("mine", "capitals")
        assert page.explorer.model.kinds == "heads+mlp"
        assert page.explorer.score("mine", ["L0M"])["items"] == ITEMS
    with broca.explore(out, include_path=tmp_path, tasks="capitals", port=0) as page:
        assert page.explorer.measurer.tasks() == ("capitals",)


def test_a_result_without_a_command_brings_its_options_too(planted, tmp_path):
    """Kinds of components and task options are those of the result that `save` wrote."""
    info = replace(make_result().model, name="planted", fingerprint="")
    saved = make_result(
        model=info, task="sorting", others=(), baseline={"sorting": 1.0}, selected=("L0M",),
        components="heads+mlp", task_options={"system_prompt": "Be brief."},
        after={"sorting": 0.5},
    )  # fmt: skip
    asked, own = {"system_prompt": "Be kind."}, tmp_path / "own.py"
    own.write_text("def answer(document):\n    return 'a'\n")
    verified = replace(saved.verification, heads=("L0H1", "L0N3"), task_options=asked)
    for result, kinds, prompt in (
        (saved, "heads+mlp", "Be brief."),
        (verified, "heads+neurons", "Be kind."),
    ):
        result.save(tmp_path / kinds)
        with broca.explore(tmp_path / kinds, port=0, reference=f"{own}:answer") as page:
            assert str(tmp_path) not in json.dumps(page.explorer.describe())
            assert page.explorer.model.kinds == kinds
            assert page.explorer.example("sorting")["prompt"].startswith(prompt)


def test_what_cannot_be_served_is_refused(planted):
    """A public host, an unknown task and a journal in memory are refused before loading."""
    with pytest.raises(BadInput, match=r"`host` 0\.0\.0\.0 is open to other machines"):
        broca.explore("no-such-model", host="0.0.0.0")
    with pytest.raises(UnknownName, match="task 'sortign' is unknown; did you mean 'sorting'"):
        broca.explore("no-such-model", tasks="sorting,sortign")
    with pytest.raises(BadInput, match="'/nowhere' is not a folder"):
        broca.explore(planted, include_path="/nowhere")
    with broca.Workspace() as space, pytest.raises(BadInput, match="`journal` must be a file"):
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
