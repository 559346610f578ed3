"""Pooled where components are more than rows can tell apart: it searches those of large slopes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from task_problems import problem_of, rows_of, searched

from broca.measurement import Measurement

COUNT = 140
NEEDED, SHARED, DECOY, BACKUP = [7, 33], 15, 60, 139
PROBLEM = problem_of(3, COUNT, items=50, k=3, continuous=True, differentiable=True, scale=2.0)


def respond(plan, needed=1.5, more=1.0):
    """Two components cost the first task log-odds, a third all tasks, and a backup of the first.

    The backup has no slope as long as the first is open. A decoy costs most alone and least beside
    them, so that it joins first and has to be exchanged. Ablated outputs are doubled. All but the
    two cost `more` times as much.
    """
    masks, own = plan.masks[plan.mask_index], plan.item_index < 100
    slopes = np.zeros((len(plan), COUNT))
    slopes[:, SHARED] = more * np.where(own, 1.5, 3.0)
    slopes[own, DECOY] = more * (1.6 - 0.4 * masks[own][:, NEEDED].sum(axis=1))
    slopes[own, BACKUP] = more * 3.0 * masks[own, NEEDED[0]]
    slopes[np.ix_(own, NEEDED)] = needed
    sure = 1 / (1 + np.exp((masks * slopes).sum(axis=1) - 3))
    if plan.response == "accuracy":
        drawn = np.random.default_rng(0).random(1000)[plan.item_index]
        return Measurement(plan, (drawn < sure).astype(float))
    slopes[own, NEEDED[0]] += more * 3.0 * masks[own, BACKUP]
    slopes[np.ix_(own, NEEDED)] -= more * 0.4 * masks[own][:, [DECOY]]
    gradients = -slopes * (sure * (1 - sure))[:, None]
    return Measurement(plan, sure, gradients.astype(np.float32) if plan.gradients else None)


@pytest.mark.long
@pytest.mark.parametrize(("rows", "listed", "slopes"), [(2100, 35, 6), (8400, COUNT, 23)])
def test_components_of_large_slopes_are_searched_where_rows_are_few(rows, listed, slopes):
    """The rows allow 35 of 140 components and backups, and one set grows; or all, and two grow."""
    ranking, plans = searched("pooled", respond, replace(PROBLEM, rows=rows))
    assert rows_of(plans) <= rows
    of_others = [plan for plan in plans if plan.response == "match"]
    assert min(plan.item_index.min() for plan in of_others) >= 100
    assert sum(plan.gradients for plan in of_others) == slopes
    ablated = np.vstack([plan.masks for plan in plans]).any(axis=0)
    assert listed <= ablated.sum() <= listed + 8
    assert set(ranking.selected) == {*NEEDED, BACKUP}
    assert not ranking.effects[~ablated].any()
    assert ranking.universal == (SHARED,)
    assert ("of 140 components were searched" in str(ranking.notes)) == (listed < COUNT)


def test_a_set_that_is_likely_is_selected_with_a_note():
    """Where two components cost little, few rows name them, and say that they are not sure."""
    weak = partial(respond, needed=0.35, more=0.0)
    ranking, _ = searched("pooled", weak, replace(PROBLEM, rows=1000))
    assert {*NEEDED} < {*ranking.selected}
    assert "make the set likely, not sure" in str(ranking.notes)


@pytest.mark.long
def test_nothing_is_said_only_of_all_components():
    """A task that nothing harms ends in *nothing* only if all components are searched."""

    def harmless(plan):
        gradients = np.zeros((len(plan), COUNT), np.float32) if plan.gradients else None
        return Measurement(plan, np.full(len(plan), 0.9), gradients)

    for rows, says in ((1500, "not enough rows"), (8400, "nothing")):
        answer = searched("pooled", harmless, replace(PROBLEM, rows=rows))[0].answer
        assert answer.says == says


@pytest.mark.parametrize(("known", "selected"), [(-3.0, False), (-8.0, True)])
def test_what_breaks_neutral_text_stays_out(known, selected):
    """Text costs what it loses beyond half a nat per token, unless the model does not know it."""

    def reading(plan):
        if plan.response != "margin":
            return respond(plan)
        return Measurement(plan, known - 2.0 * plan.masks[plan.mask_index, BACKUP])

    problem = replace(PROBLEM, rows=2100, texts=np.arange(1000, 1028))
    ranking, plans = searched("pooled", reading, problem)
    assert {*NEEDED} <= {*ranking.selected}
    assert (BACKUP in ranking.selected) == selected
    assert rows_of(plans) <= 2100
