"""Drops of selections in other models and tasks, and their judgements."""

from types import SimpleNamespace

import numpy as np
import pytest

from broca.comparisons.judging import carries, drop_share, scores
from broca.results.comparison import ComparedSelection

ITEMS = 400


def answers(share, seed=0):
    """Returns right and wrong answers, about `share` of them right."""
    return (np.random.default_rng(seed).random(ITEMS) < share).astype(float)


TRIAL = SimpleNamespace(
    aggregation=lambda task, values: None, score=lambda task, values: float(np.mean(values))
)
"""A trial whose scores are means."""


def measured(**tasks):
    """Returns a model's answers by task: intact, and without each selection."""
    reported = {task: np.stack(rows) for task, rows in tasks.items()}
    return SimpleNamespace(reported=reported, trial=TRIAL)


INTACT = np.ones(ITEMS)
SELECTIONS = (
    ComparedSelection("a's", "a", "adding", ("L0H0",)),
    ComparedSelection("b's", "b", "adding", ("L0H1",)),
)


def test_scores_are_means_and_drops_have_intervals():
    """Every selection has a score and a drop; the intact model has only a score."""
    rows = (INTACT, answers(0.4), answers(0.9))
    lines = scores("a", measured(adding=rows), SELECTIONS, level=0.05, seed=0)
    assert [line.selection for line in lines] == [None, "a's", "b's"]
    assert [line.score for line in lines] == [row.mean() for row in rows]
    assert lines[0].drop is None
    assert lines[1].drop.value == pytest.approx(1 - rows[1].mean())
    assert lines[1].drop.low < lines[1].drop.value < lines[1].drop.high


@pytest.mark.parametrize(
    ("score", "answer"),
    [(0.3, "yes"), (0.8, "in part"), (1.0, "no"), (0.99, "no")],
)
def test_another_selection_is_needed_if_it_costs_half_of_the_own_one(score, answer):
    """A's selection carries over to B if it costs B half of the 80 points that B's costs."""
    reported = measured(adding=(INTACT, answers(score, 1), answers(0.2, 2)))
    (line,) = carries([("b", reported)], SELECTIONS, level=0.05, seed=0)
    assert (line.selection, line.model, line.own_selection) == ("a's", "b", "b's")
    assert line.share.value == pytest.approx((1 - answers(score, 1).mean()) / 0.8, abs=0.05)
    assert line.carried == answer


def test_a_model_without_a_selection_is_judged_by_its_loss():
    """If the model has no selection, a loss gives "yes", and no loss gives "undecided"."""
    only = SELECTIONS[:1]
    (lost,) = carries([("b", measured(adding=(INTACT, answers(0.5))))], only, level=0.05, seed=0)
    assert (lost.carried, lost.own_selection, lost.share) == ("yes", None, None)
    (undamaged,) = carries([("b", measured(adding=(INTACT, INTACT)))], only, level=0.05, seed=0)
    assert undamaged.carried == "undecided"


def test_a_selection_is_not_tried_where_it_was_found():
    """A selection is tried only on its task in other models."""
    rows = (INTACT, answers(0.5), answers(0.5))
    models = [(name, measured(adding=rows, other=rows)) for name in ("a", "b")]
    lines = carries(models, SELECTIONS, level=0.05, seed=0)
    assert {(line.selection, line.model, line.task) for line in lines} == {
        ("b's", "a", "adding"), ("a's", "b", "adding"),
    }  # fmt: skip


def test_p_values_are_corrected_over_all_lines():
    """The correction is Holm's: two equal p-values double."""
    rows = (INTACT, answers(0.97), answers(0.97))
    models = [("a", measured(adding=rows)), ("b", measured(adding=rows))]
    lines = carries(models, SELECTIONS, level=0.05, seed=0)
    alone = carries([("b", measured(adding=rows))], SELECTIONS, level=0.05, seed=0)
    assert lines[0].p == pytest.approx(2 * alone[0].p)


def test_a_share_resamples_the_same_items():
    """Equal drops give a share of exactly one; a drop of zero gives no share."""
    after = answers(0.4)
    share = drop_share(INTACT, after, after)
    assert (share.value, share.low, share.high) == (1.0, 1.0, 1.0)
    assert drop_share(INTACT, after, INTACT) is None
    lower = drop_share(INTACT, after, after, aggregate=lambda values, _: 2 * values.mean())
    assert lower.value == 1.0
