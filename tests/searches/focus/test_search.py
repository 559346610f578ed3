"""Focus on simulated tasks: contrast, joint sets, abstention and budgets."""

import numpy as np
import pytest
from task_problems import problem_of

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.recovery import PairwiseModel
from broca.searches import make_search
from broca.searches.focus.settling import first_good
from broca.searches.measuring import SetDrops


class Tasks:
    """Several tasks over one model; the probability of success depends on the mask alone.

    Items of task `t` start at `100 * t`; `chances[t]` maps a mask to a probability.
    """

    def __init__(self, *chances, components=48, noise=0.05, seed=0):
        self.chances, self.components, self.noise, self.seed = chances, components, noise, seed
        self.rows = 0

    def problem(self, *, continuous=True, **options):
        """Returns the problem of the first task against the others."""
        return problem_of(
            len(self.chances), self.components, items=40, continuous=continuous, **options
        )

    def run(self, plan):
        """Returns probabilities with noise, or right and wrong answers for accuracy."""
        self.rows += plan.cost
        responses = np.empty(len(plan))
        for row, (mask, item) in enumerate(zip(plan.mask_index, plan.item_index, strict=True)):
            chance = self.chances[item // 100](plan.masks[mask])
            columns = np.flatnonzero(plan.masks[mask])
            if plan.response == "probability":
                rng = np.random.default_rng([self.seed, int(item), *columns.tolist()])
                responses[row] = chance + self.noise * rng.normal()
            else:  # an item has the same difficulty under every mask
                hard = np.random.default_rng([self.seed, int(item)]).random()
                responses[row] = float(hard < chance)
        return Measurement(plan, responses, self.slopes(plan) if plan.gradients else None)

    def slopes(self, plan):
        """Returns the slope of every gate: the loss by ablating it in each row's mask."""
        return np.array(
            [
                [
                    self.chances[item // 100](plan.masks[mask] & ~component)
                    - self.chances[item // 100](plan.masks[mask] | component)
                    for component in np.eye(self.components, dtype=bool)
                ]
                for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
            ],
            dtype=np.float32,
        )

    def solve(self, **options):
        """Returns the ranking of focus."""
        return searches.run(make_search("focus", self.problem(**options)), self.run)


def harmed_by(*columns, loss=0.4, base=1.0):
    """Returns a task that loses `loss` for every ablated column."""
    return lambda mask: max(0.0, base - loss * sum(bool(mask[column]) for column in columns))


def test_leaves_out_what_every_task_needs():
    """A component that harms all tasks most is not selected and is reported as universal."""
    tasks = Tasks(
        harmed_by(3, 7, 30, 30), harmed_by(30, loss=0.8), harmed_by(30, 11, loss=0.8), seed=1
    )
    ranking = tasks.solve()
    assert set(ranking.selected) == {3, 7}
    assert 30 in ranking.universal
    assert not set(ranking.universal) & {3, 7}
    assert ranking.others[30] < -0.3


def test_sees_components_that_matter_only_together():
    """Two backups are selected although either one alone costs almost nothing."""

    def pair(mask):
        return 0.1 if mask[5] and mask[20] else 1.0 - 0.04 * (mask[5] + mask[20])

    tasks = Tasks(pair, harmed_by(9), seed=2)
    assert set(tasks.solve().selected) == {5, 20}


def test_keeps_components_of_which_each_alone_destroys_the_task():
    """All components that each destroy the task are selected, not only the first."""

    def chain(mask):
        return 0.0 if mask[[2, 13, 40, 41]].any() else 1.0

    assert set(Tasks(chain, harmed_by(9), seed=3).solve().selected) == {2, 13, 40, 41}


def test_abstains_with_a_reason_where_all_harm_is_shared():
    """Components that harm all tasks equally are not selected, and the reason says so."""
    shared = harmed_by(4, 8, 15, 16)
    ranking = Tasks(shared, shared, shared, seed=4).solve()
    assert ranking.selected == ()
    assert "no specific harm" in ranking.reason


def test_works_without_other_tasks_and_without_probabilities():
    """Two components are found without other tasks, by the task's accuracy."""
    ranking = Tasks(harmed_by(1, 22), seed=5).solve(rows=1500, continuous=False)
    assert set(ranking.selected) == {1, 22}


def test_default_budget_is_800_rows_for_each_task():
    """The default budget of three tasks is 2400 rows, which are nearly used."""
    tasks = Tasks(harmed_by(3, 7), harmed_by(9), harmed_by(11), seed=6)
    tasks.solve()
    assert 2000 < tasks.rows <= 2400


def with_and_without_stopping(seed, *chances):
    """Returns ranking and rows of a search that may stop and of one that may not."""
    results = []
    for stop in (True, False):
        tasks = Tasks(*chances, seed=seed)
        search = make_search("focus", tasks.problem(), stop=stop)
        results.append((searches.run(search, tasks.run), tasks.rows))
    return results


@pytest.mark.parametrize("seed", [6, 7, 8])
def test_stops_when_nothing_is_left_to_gain(seed):
    """If two components cost the task its whole score, fewer rows give the same set."""
    pair = harmed_by(3, 7, loss=0.5)
    (stopped, rows), (complete, budget) = with_and_without_stopping(
        seed, pair, harmed_by(9), harmed_by(11)
    )
    assert set(stopped.selected) == set(complete.selected) == {3, 7}
    assert rows < 0.85 * budget <= 0.85 * 2400
    assert stopped.options["rows"] == rows
    (note,) = stopped.notes
    assert note.startswith(f"{rows:,} of 2,400 rows were enough: ")
    assert "the sets proposed last cost the task" in note
    assert complete.notes == ()


def test_rounds_go_on_where_what_can_be_lost_is_not_known():
    """Only for probabilities is the loss of the intact model's score a reason to stop."""
    pair = harmed_by(3, 7, loss=0.5)
    rankings = {
        continuous: Tasks(pair, harmed_by(9), harmed_by(11), seed=6).solve(continuous=continuous)
        for continuous in (True, False)
    }
    assert "sets proposed last" in rankings[True].notes[0]
    assert not any("sets proposed last" in note for note in rankings[False].notes)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_abstains_early_where_nothing_harms(seed):
    """The search stops early and says why, but still finds a small specific effect."""
    (stopped, rows), (complete, budget) = with_and_without_stopping(
        seed, lambda mask: 0.9, harmed_by(9), harmed_by(11)
    )
    assert stopped.selected == complete.selected == ()
    assert "no specific harm" in stopped.reason
    assert rows < 0.85 * budget
    assert "significantly less than 0.05" in stopped.notes[0]
    weak = Tasks(harmed_by(3, loss=0.3), harmed_by(9), harmed_by(11), seed=seed).solve()
    assert weak.selected == (3,)


@pytest.mark.parametrize("components", [3, 7, 200])
def test_any_number_of_components(components):
    """The search works with fewer components than the short list holds and with many more."""
    tasks = Tasks(harmed_by(1, loss=0.9), harmed_by(2), components=components, seed=7)
    assert tasks.solve(k=3).selected == (1,)


def test_effects_come_with_intervals():
    """Effects of selected components have 90 % intervals that are near the true effect of 0.4.

    More than 80 % of the intervals of components without effect contain zero.
    """
    ranking = Tasks(harmed_by(3, 7), harmed_by(9), seed=8).solve()
    assert (ranking.intervals[:, 0] < ranking.intervals[:, 1]).all()
    held = (ranking.intervals[:, 0] <= 0) & (ranking.intervals[:, 1] >= 0)
    assert np.delete(held, [3, 7]).mean() > 0.8
    np.testing.assert_array_equal(np.flatnonzero(ranking.q_values < 0.1), [3, 7])
    assert (ranking.p_values <= ranking.q_values).all()
    for column in (3, 7):
        low, high = ranking.intervals[column]
        effect, half = ranking.effects[column], (high - low) / 2
        assert low < effect < high
        assert abs(effect + 0.4) < 2 * half
        assert ranking.frequency[column] == 1.0


def test_contrast_trades_the_others_off():
    """At 0 the component that every task needs is selected, and at 1 it is not."""
    tasks = Tasks(harmed_by(3, 30, 30), harmed_by(30, loss=0.8), harmed_by(30, loss=0.8), seed=1)
    selections = {
        contrast: set(
            searches.run(
                make_search("focus", tasks.problem(), contrast=contrast), tasks.run
            ).selected
        )
        for contrast in (0.0, 1.0)
    }
    assert selections == {0.0: {3, 30}, 1.0: {3}}


def test_result_says_how_well_effects_add_up():
    """Additive effects of all components are explained better than those of a chain.

    A chain loses everything with its first member, and its other members add no loss.
    """
    shares = np.linspace(0.1, 0.002, 48)

    def total(mask):
        return 1.0 - float(shares @ mask)

    additive = Tasks(total, harmed_by(9), noise=0.005, seed=9).solve().additivity
    assert additive.explained > 0.9
    assert additive.rank_correlation > 0.9

    def chain(mask):
        return 0.0 if mask[10:22].any() else 1.0

    chained = Tasks(chain, harmed_by(9), noise=0.005, seed=9).solve().additivity
    assert chained.explained < additive.explained
    assert chained.rank_correlation < additive.rank_correlation


def test_too_few_rows_and_bad_settings_are_refused():
    """The message has the required rows or the permitted values."""
    problem = Tasks(harmed_by(1), harmed_by(2)).problem(rows=599)
    with pytest.raises(BadInput, match="needs 600 at least"):
        make_search("focus", problem)
    with pytest.raises(BadInput, match="drops from 0 to 1"):
        make_search("focus", Tasks(harmed_by(1)).problem(), least=2.0)
    with pytest.raises(BadInput, match="contrast must be 0 or more"):
        make_search("focus", Tasks(harmed_by(1)).problem(), contrast=-1.0)
    with pytest.raises(BadInput, match="gradients must be true or false"):
        make_search("focus", Tasks(harmed_by(1)).problem(), gradients="no")
    with pytest.raises(BadInput, match="stop must be true or false"):
        make_search("focus", Tasks(harmed_by(1)).problem(), stop="no")


def hidden(mask):
    """Component 90 has no effect until 5 and 20 are ablated; a fifth of all have a small effect."""
    shared = 1.0 - 0.05 * int(mask[100:160].sum())
    specific = 0.2 * (int(mask[5]) + int(mask[20])) + 0.4 * bool(mask[[5, 20, 90]].all())
    return max(0.0, shared - specific)


@pytest.mark.long
def test_gradients_show_what_matters_only_beside_others():
    """Gradients find a third component that has an effect only if two others are ablated.

    Without gradients it is not found, because no useful random mask ablates all three. Components
    that harm every task equally may be selected besides.
    """

    def others(mask):
        return max(0.0, 1.0 - 0.05 * int(mask[100:160].sum()))

    for seed in (2, 3, 4):
        selections = {}
        for gradients in (True, False):
            tasks = Tasks(hidden, others, others, components=300, seed=seed)
            problem = tasks.problem(differentiable=True)
            ranking = searches.run(make_search("focus", problem, gradients=gradients), tasks.run)
            selections[gradients] = set(ranking.selected)
            assert ranking.options["gradients"] == gradients
            assert 2000 < tasks.rows <= 2400
        assert {5, 20, 90} <= selections[True]
        assert all(100 <= column < 160 for column in selections[True] - {5, 20, 90})
        assert 90 not in selections[False]


def test_a_table_says_which_sets_do_harm():
    """A set is harmful if its loss is large and surely exceeds that of the others."""
    task = np.array([[1.0] * 8, [1.0] + [0.0] * 7, [1.0] * 8, [0.0] * 8])
    others = np.array([[0.0] * 8, [0.0] * 8, [1.0] * 8, [0.0] * 8])
    items = np.arange(8)
    assert SetDrops(task, others, 1.0, items).harmful(0.1).tolist() == [True, False, False, False]
    assert SetDrops(task, others, 0.0, items).harmful(0.1).tolist() == [True, False, True, False]
    assert SetDrops(0.05 * task, 0 * others, 1.0, items).harmful(0.1).tolist() == [False] * 4


def test_items_asked_again_tell_nothing_new():
    """Repeated rows of an item narrow the interval only where they disagree."""
    drops = np.array([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    items = np.arange(8)
    once = SetDrops(drops, 0 * drops, 1.0, items)
    again = SetDrops(np.tile(drops, 5), np.zeros((1, 40)), 1.0, np.tile(items, 5))
    assert again.interval(0) == pytest.approx(once.interval(0))
    assert not once.harmful(0.1)[0]
    assert not again.harmful(0.1)[0]
    noise = np.tile([[1.0, 0.0, 0.0, 0.0]], 8)  # one of four rows of each item loses
    consistent = SetDrops(noise, 0 * noise, 1.0, np.repeat(items, 4))
    assert consistent.harmful(0.1)[0]
    assert consistent.interval(0)[1] == once.interval(0)[1]
    assert consistent.interval(0)[2] < once.interval(0)[2]


def test_the_interval_holds_the_mean_of_items_at_large():
    """About 90 % of the intervals contain the mean over all items, also with repeated items."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        drops = (rng.random(50) < 0.3).astype(float)
        items = rng.permutation(np.tile(np.arange(50), 5))[:200]
        low, _, high = SetDrops(drops[None, items], np.zeros((1, 200)), 1.0, items).interval(0)
        held.append(low <= -0.3 <= high)
    assert 0.88 <= np.mean(held) <= 0.93


def test_the_simplest_set_that_does_harm_is_the_answer():
    """The simplest harmful set is selected, or the simplest set if none is harmful."""
    sets = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    model = PairwiseModel(3, largest=3, cost=0.02).fit(
        sets, np.array([0.09, 0.1, 0.11]), noise=0.02
    )
    drops = (np.arange(100)[None] < np.array([[9], [11], [12]])).astype(float)
    table = SetDrops(drops, np.zeros_like(drops), 1.0, np.arange(drops.shape[1]))
    assert table.harmful(0.1).tolist() == [False, True, True]
    assert first_good(table, sets, model, 0.02, table.harmful(0.1)) == 1
    assert first_good(table, sets, model, 0.02, table.harmful(0.05)) == 0
    assert first_good(table, sets, model, 0.02, table.harmful(0.5)) == 0


def test_every_member_has_its_cost():
    """Two additional members must add twice the worth of one."""
    sets = np.array([[1, 0, 0], [1, 1, 1]], dtype=bool)
    drops = (np.arange(4000)[None] < np.array([[2000], [2140]])).astype(float)
    table = SetDrops(drops, np.zeros_like(drops), 1.0, np.arange(drops.shape[1]))
    model = PairwiseModel(3, largest=3, cost=0.02).fit(sets, drops.mean(axis=1), noise=0.02)
    harmful = table.harmful(0.1)
    assert first_good(table, sets, model, 0.02, harmful) == 0
    assert first_good(table, sets, model, 0.01, harmful) == 1
