"""lm-eval's own score of a plain model is broca's."""

import pytest
from harness_tasks import answers, write_tasks

from broca.errors import BadInput, SelfTestFailed
from broca.exports.scoring import compare_scores, harness_score, require_single
from broca.options import TaskOptions
from broca.tasks import Catalog, RequestTokenizer


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """Tasks of every kind."""
    return Catalog(write_tasks(tmp_path_factory.mktemp("tasks")))


def load(catalog, tiny, name, options=None):
    """A task as broca asks it."""
    tokenizer = RequestTokenizer(tiny.tokenizer, max_length=tiny.max_length)
    return catalog.load(name, tokenizer, options=options or TaskOptions())


@pytest.mark.parametrize(
    ("name", "asked"), [("choice", {}), ("generation", {}), ("choice", {"limit": 7})]
)
def test_the_harness_scores_the_same_items(tiny, catalog, name, asked):
    """With lm-eval's evaluator and its `hf` model."""
    options = TaskOptions(**asked)
    benchmark = load(catalog, tiny, name, options)
    pairs = zip(benchmark.items, answers(tiny, benchmark), strict=True)
    ours = benchmark.aggregate([benchmark.score(item, found) for item, found in pairs])
    theirs = harness_score(tiny.model, tiny.tokenizer, benchmark, options=options)
    check = compare_scores(benchmark, ours, theirs, dtype="float32")
    assert (check.task, check.items) == (name, asked.get("limit", 24))
    assert check.broca == pytest.approx(check.hf, abs=1e-6)


def test_other_scores_are_refused(tiny, catalog):
    """Beyond what the number format explains."""
    benchmark = load(catalog, tiny, "choice")
    with pytest.raises(SelfTestFailed, match=r"scores 0.5100 .* broca's ablated model 0.5000"):
        compare_scores(benchmark, 0.5, 0.51, dtype="float32")
    assert compare_scores(benchmark, 0.5, 0.51, dtype="bfloat16").hf == 0.51


def test_a_group_is_refused(tiny, catalog):
    """One task is compared."""
    with pytest.raises(BadInput, match="'pair' is a group: name one of choice, few"):
        require_single(load(catalog, tiny, "pair"))
