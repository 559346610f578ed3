"""Other sets beneath a set and instead of it, and members that take over from each other."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from simulated import COMPONENTS, MiddleTask, SimulatedModel, SimulatedTask

import broca
from broca import designs, searches
from broca.measurement import Measurement, Plan
from broca.results.files import decode, encode
from broca.runs.alternatives import backups
from broca.runs.search import _given
from broca.searches import Problem, Ranking
from broca.store import Journal, read_runs

FIRST, SECOND, ALONE = "L1H0", "L2H0", "L3H0"


class Redundant(SimulatedModel):
    """The task loses 80 % of its items without both of two heads, 10 % without the first alone."""

    def _lost_to(self, mask, position):
        first, second, alone = (mask[COMPONENTS.column(name)] for name in (FIRST, SECOND, ALONE))
        drawn = self._draw(position, "both")
        if first and (drawn < 0.1 or (second and drawn < 0.8)):
            return "own"
        return "own" if alone and self._draw(position, "alone") < 0.3 else None


def run_of(trial, measure):
    """Returns a stand-in of a run: its trial, its components and its measurement."""
    tasks, model = SimpleNamespace(trial=lambda: trial), SimpleNamespace(components=COMPONENTS)
    return SimpleNamespace(tasks=tasks, model=model, measure=measure)


def test_a_backup_is_named_with_the_head_from_which_it_takes_over():
    """One of four heads costs more where another, or a set with it, is ablated, and no other."""
    model = Redundant({"a": {}, "b": {}})
    run = run_of(model.examiner().trial, model.execute)
    columns = COMPONENTS.columns([SECOND, ALONE, FIRST, "L5H5"])
    beneath = [(columns[2:], columns[:2])]  # two members under a set of two
    line, after_both = backups(run, columns, broca.Scope(), beneath)
    assert (line.head, line.of) == (SECOND, FIRST)
    assert (after_both.head, after_both.of) == (SECOND, f"{FIRST}+L5H5")
    assert after_both.beside == line.beside
    assert line.alone.value == 0
    masks = designs.of_sets([COMPONENTS.columns(names) for names in ([FIRST], [FIRST, SECOND])], 96)
    first, both = run.measure(Plan.crossed(masks, np.arange(80))).responses.reshape(2, 80).mean(1)
    assert line.beside.value == pytest.approx(first - both)
    assert line.p < 0.01


def test_backups_are_tested_by_the_task_s_own_score():
    """Twelve of 90 items that only a pair costs tell little where ten others weigh as much."""
    rows = np.ones((4, 100))  # intact, without each, without both
    rows[3, :12], rows[1:, 50] = 0, 0
    for task, found in ((SimulatedTask(), 1), (MiddleTask(), 0)):
        model = SimulatedModel({"a": {}}, items=100)
        trial = replace(model.examiner().trial, benchmarks={"a": task})
        run = run_of(trial, lambda plan: Measurement(plan, rows[plan.mask_index, plan.item_index]))
        assert len(backups(run, [0, 1], broca.Scope())) == found


@pytest.mark.parametrize("ablated", [True, False])
def test_a_search_among_the_others_keeps_the_given_ones_as_they_are(ablated):
    """All masks ablate the given columns, or none of them; a selection names all columns."""
    seen = []

    def inner(problem):
        measurement = yield Plan.crossed(designs.singles(problem.components), problem.items)
        assert measurement.plan.masks.shape == (94, 94)
        return Ranking.of(np.zeros(94), (int(np.argmin(measurement.mask_means())),), "", {})

    model = Redundant({"a": {}, "b": {}})

    def execute(plan):
        seen.append(plan.masks)
        return model.execute(plan)

    given = COMPONENTS.columns([FIRST, "L0H3"])
    problem = Problem(components=94, items=np.arange(40), k=1, rows=None, seed=0)
    ranking = searches.run(_given(inner(problem), given, 96, ablated), execute)
    (masks,) = seen
    assert (masks[:, given] == ablated).all()
    assert masks.sum() == 94 * (1 + 2 * ablated)
    # beneath the first head its backup costs most, else the head that needs no other
    assert COMPONENTS.names[ranking.selected[0]] == (SECOND if ablated else ALONE)


def test_localize_searches_again(planted, tmp_path):
    """With nothing left beneath the planted set the searches end, and say so; a file says the same.

    No other set has a member of the first. Of all that is measured, searches for other sets alone
    are not in the cost.
    """
    path = tmp_path / "journal.sqlite"
    found = broca.localize(
        planted, "capitals", others=["sorting"], method="one-shot", rows=1600, items=8, k=2,
        verify=False, report_items=40, alternatives=1, journal=path,
    )  # fmt: skip
    with Journal(path, read_only=True) as journal:
        runs = [run for run in read_runs(journal) if "given" not in run.settings]
    costs = sum(run.rows for run in runs), sum(run.tokens for run in runs)
    assert (found.cost.measured, found.cost.tokens) == costs
    beneath, instead = found.alternatives
    assert (beneath.how, instead.how) == ("beneath", "instead")
    assert not {*beneath.heads, *instead.heads} & {*found.selected}
    assert instead.rows > 0
    assert found == decode(broca.Localization, encode(found))
    assert "Other sets that carry the task" in found.page()


@pytest.mark.parametrize(
    ("method", "k", "reason"),
    [("greedy", 4, "no other component is left"), ("cs-fresh", 3, "tell none apart")],
)
def test_searches_end_where_too_few_components_are_left(method, k, reason):
    """Of four MLP blocks a set takes all, or all but one, which the method cannot search."""
    found = broca.localize(
        "reference-small", "sorting", others=["addition"], components="mlp", method=method, k=k,
        items=20, verify=False, report_items=20, alternatives=1,
    )  # fmt: skip
    assert [reason in line.reason for line in found.alternatives] == [True, True]
