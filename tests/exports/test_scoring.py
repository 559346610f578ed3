"""lm-eval's score of a plain model equals broca's."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from broca.exports.requests import ExportRequest
from harness_tasks import answers, write_tasks

from broca.errors import BadInput, SelfTestFailed
from broca.exports import scoring
from broca.options import RunOptions, SourceOptions, TaskOptions
from broca.results.base import AblationInfo
from broca.runs.session import open_run
from broca.tasks import Catalog, RequestTokenizer


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """A catalog of tasks of every kind."""
    return Catalog(write_tasks(tmp_path_factory.mktemp("tasks")))


@pytest.fixture(scope="module")
def opened(catalog, tiny):
    """A session on the tiny model that knows the tasks."""
    options = RunOptions(
        source_options=SourceOptions(include_path=catalog.include_path),
        task_options=TaskOptions(limit=7),
    )
    with open_run(tiny, options, warns=False) as session:
        yield session


def load(catalog, tiny, name, options=None):
    """Returns a task with its requests."""
    tokenizer = RequestTokenizer(tiny.tokenizer, max_length=tiny.max_length)
    return catalog.load(name, tokenizer, options=options or TaskOptions())


@pytest.mark.parametrize(
    ("name", "task_options"), [("choice", {}), ("generation", {}), ("choice", {"limit": 7})]
)
def test_the_harness_scores_the_same_items(tiny, catalog, name, task_options):
    """lm-eval's evaluator with its `hf` model gives broca's score on the same items."""
    options = TaskOptions(**task_options)
    benchmark = load(catalog, tiny, name, options)
    pairs = zip(benchmark.items, answers(tiny, benchmark), strict=True)
    broca_score = benchmark.aggregate([benchmark.score(item, answer) for item, answer in pairs])
    harness_score = scoring.harness_score(tiny.model, tiny.tokenizer, benchmark, options=options)
    check = scoring.compare_scores(benchmark, broca_score, harness_score, dtype="float32")
    assert (check.task, check.items) == (name, task_options.get("limit", 24))
    assert check.broca == pytest.approx(check.hf, abs=1e-6)


def test_other_scores_are_refused(tiny, catalog):
    """Scores that differ by more than the number format explains are refused."""
    benchmark = load(catalog, tiny, "choice")
    with pytest.raises(SelfTestFailed, match=r"scores 0.5100 .* broca's ablated model 0.5000"):
        scoring.compare_scores(benchmark, 0.5, 0.51, dtype="float32")
    assert scoring.compare_scores(benchmark, 0.5, 0.51, dtype="bfloat16").hf == 0.51


def test_the_ablated_score_is_that_of_the_model_with_the_weights_zeroed(tiny, catalog, opened):
    """The ablated score equals lm-eval's score of the plain model with weights zeroed by hand."""
    benchmark = load(catalog, tiny, "choice")
    names = ["L0H1", "L1H2"]
    score = scoring.ablated_score(opened, names, 0.0, benchmark)
    plain = copy.deepcopy(tiny.model)
    width = tiny.structure.projections[0].head_dim
    with torch.no_grad():
        for layer, head in ((0, 1), (1, 2)):
            weight = plain.model.layers[layer].self_attn.o_proj.weight
            weight[:, head * width : (head + 1) * width] = 0
    expected = scoring.harness_score(plain, tiny.tokenizer, benchmark, options=TaskOptions())
    assert score == pytest.approx(expected, abs=1e-6)


def test_the_task_of_a_check_is_named_or_the_results(tiny, opened):
    """A check needs one task, named or the result's, under zero ablation or a scale."""
    request = ExportRequest.of(tiny, "L0H1", "adapter", None)
    with pytest.raises(BadInput, match="`check` needs a `task`"):
        scoring.checked_task(request, None)
    benchmark = scoring.checked_benchmark(opened, scoring.checked_task(request, "choice"))
    assert (benchmark.name, len(benchmark.items)) == ("choice", 7)
    with pytest.raises(BadInput, match="'pair' is a group: name one of choice, few"):
        scoring.checked_benchmark(opened, "pair")
    of_run = replace(request, result=SimpleNamespace(task="choice"))
    assert scoring.checked_task(of_run, None) == "choice"
    averaged = replace(request, ablation=AblationInfo("mean", 0.0))
    with pytest.raises(BadInput, match="under mean ablation the outputs alone are compared"):
        scoring.checked_task(averaged, "choice")
