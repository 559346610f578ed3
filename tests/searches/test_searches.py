"""All methods: what they share on planted problems, their records and their options."""

from dataclasses import replace

import numpy as np
import pytest
from task_problems import rows_of, searched

from broca.errors import BadInput, UnknownName
from broca.measurement import Measurement, Plan
from broca.searches import METHODS, Method, Problem, Ranking, require_method
from broca.testing import planted_problem

ITEMS = np.arange(20)
PROBLEM = Problem(
    30, ITEMS, 5, 10_000, 0, confirm=np.arange(20, 30), continuous=True, differentiable=True
)


def solve(method, planted, *, k=5, rows=None, seed=0, **options):
    """Runs a search on a planted problem and counts its rows."""
    problem = Problem(len(planted.effects), ITEMS, k, rows, seed, differentiable=True)
    ranking, plans = searched(method, planted.run, problem, **options)
    return ranking, rows_of(plans)


@pytest.mark.parametrize("method", METHODS)
def test_finds_the_planted_components(method):
    """Each selects exactly the planted columns, first in an order of all; the seed decides all."""
    planted = planted_problem(components=60, effect=0.15, noise=0.05, seed=1)
    ranking, _ = solve(method, planted, seed=9)
    assert set(ranking.selected) == set(planted.planted)
    assert not ranking.reason
    assert sorted(ranking.order) == list(range(60))
    assert ranking.order[: len(ranking.selected)] == ranking.selected
    again, _ = solve(method, planted, seed=9)
    np.testing.assert_array_equal(ranking.effects, again.effects)
    assert ranking.order == again.order


@pytest.mark.parametrize("method", METHODS)
def test_selects_nothing_where_nothing_responds(method):
    """Constant responses give no selection and a reason."""

    def constant(plan):
        gradients = np.zeros((len(plan), 30), dtype=np.float32) if plan.gradients else None
        return Measurement(plan, np.ones(len(plan)), gradients)

    ranking, _ = searched(method, constant, Problem(30, ITEMS, 5, None, 0, differentiable=True))
    assert ranking.selected == ()
    assert ranking.reason


@pytest.mark.parametrize("method", METHODS)
def test_selects_fewer_than_k_rather_than_fill_up(method):
    """If a single component has an effect, it alone is selected."""
    planted = planted_problem(components=30, planted=1, noise=0.0, seed=2)
    planted.effects[[c for c in range(30) if c not in planted.planted]] = 0.0
    ranking, _ = solve(method, planted)
    assert ranking.selected == planted.planted


@pytest.mark.parametrize("method", METHODS)
def test_row_budget_is_kept(method):
    """No search exceeds its budget."""
    planted = planted_problem(components=30, seed=3)
    for rows in (300, 433, 1000):
        _, spent = solve(method, planted, rows=rows, k=3)
        assert 0 < spent <= rows


@pytest.mark.parametrize(
    "method", [*(name for name in METHODS if "grad" in name), "learned-gates", "one-shot", "greedy",
               "coar", "co-ablation"],
)  # fmt: skip
def test_a_small_budget_takes_items_of_all_tasks_of_a_group(method):
    """The items of a group stand task by task: a search on some of them takes from both halves.

    So does what it measures last, such as the second training of gates.
    """
    problem = replace(PROBLEM, components=2, items=np.arange(80), k=1, rows=120)
    _, plans = searched(method, planted_problem(components=2, planted=1).run, problem)
    for later in (plans, plans[len(plans) // 2 :]):
        items = {item for plan in later for item in plan.item_index.tolist()}
        assert min(items) < 40 <= max(items)
        assert len(items) < 80


@pytest.mark.parametrize("components", [2, 7, 16])
@pytest.mark.parametrize("method", METHODS)
def test_no_default_refuses_a_small_model(method, components):
    """A component that costs half the response ranks first in models of few components."""
    problem = replace(PROBLEM, components=components, rows=None)
    slopes = np.zeros(components, dtype=np.float32)
    slopes[0] = -0.5

    def execute(plan):
        noise = np.random.default_rng(len(plan)).normal(0, 0.05, len(plan))
        responses = 1 + plan.masks[plan.mask_index] @ slopes.astype(float) + noise
        slope = -np.tile(slopes, (len(plan), 1))  # the slope of opening a gate
        return Measurement(plan, responses, slope if plan.gradients else None)

    assert searched(method, execute, problem)[0].order[0] == 0


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_what_a_method_needs_is_refused_before_anything_is_measured(method):
    """Too few rows and missing gradients are refused; the message says what."""
    assert next(method.search(PROBLEM)) is not None
    with pytest.raises(BadInput, match=r"`rows` 10 is too few"):
        method.most_rows(replace(PROBLEM, rows=10))
    without = replace(PROBLEM, differentiable=False, rows=100_000)
    if method.name.startswith("gradient") or method.name == "learned-gates":
        with pytest.raises(BadInput, match="`response` to probability or margin"):
            method.most_rows(without)
    else:
        assert method.most_rows(without) > 0


@pytest.mark.parametrize(
    "change",
    [
        {"effects": np.full(30, np.nan)}, {"effects": np.zeros(29)}, {"order": (0, 1)},
        {"selected": (0, 0)}, {"selected": tuple(range(6))}, {"rows": 1},
        {"effects": np.zeros((30, 1))}, {"rows": 1, "items": [10**6]}, {"rows": 1, "width": 29},
        {"rows": 1, "items": []}, {"frequency": np.zeros(29)}, {"groups": {"backups": (30,)}},
        {"intervals": np.zeros((29, 2))},
    ],
)  # fmt: skip
def test_what_is_no_ranking_is_refused_by_the_name_of_its_method(change):
    """A plug-in's effects may be no numbers, its selection too large, its rows too many or others'.

    A position outside of its problem is often one of a report item, which no search may see.
    """

    class Wrong:
        def generate(self, problem):
            masks = np.zeros((1, change.get("width", 30)), dtype=bool)
            row = Plan.crossed(masks, change.get("items", problem.items[:1]))
            yield from [row] * change.get("rows", 0)
            return Ranking(
                **{"effects": np.zeros(30), "order": tuple(range(30)), "selected": ()} | change
            )

        def most_rows(self, _):
            return 0

    method = Method(name="wrong", measures="", answers="", rows="", make=Wrong)
    with pytest.raises(BadInput, match=r"method 'wrong' (must (return|measure) |measures 1)"):
        next(method.search(PROBLEM))


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("pooled", {"least": 0.0}, "drops from 0 to 1"),
        ("pooled", {"contrast": float("inf")}, "contrast must be 0 or more"),
        ("pooled", {"least": "half"}, "option least 'half' of method 'pooled': Expected `float`"),
        ("co-ablation", {"leaders": 6}, r"1 to k \(5\) leaders, not 6"),
        ("coar", {"share": 1.0}, "share of coar"),
        ("coar", {"contrast": 1.0}, "there are none: name some in `others`"),
        ("cs-stratified", {"sparsty": 0.1}, "did you mean 'sparsity'"),
        ("cs-stratified", {"intercept": "none"}, "use fitted, baseline"),
        ("cs-stratified", {"sparsity": 2}, "between 0 and 1"),
        ("cs-tuned", {"design": "stratfied"}, "did you mean 'stratified'"),
        ("cs-fresh", {"resamples": -1}, "0 or more, not -1"),
        ("cs-fresh", {"sparsity": 0.99}, "tell none apart"),
        ("gradient-masked", {"low": 0.5, "high": 0.2}, "low <= high"),
        ("gradient-integrated", {"steps": 0}, "1 step or more"),
        ("learned-gates", {"push": 0}, "push"),
        ("learned-gates", {"steps": 2}, "8 steps or more"),
    ],
)
def test_bad_option_is_refused(method, options, message):
    """The message names the unknown option or the permitted values; names have suggestions."""
    with pytest.raises(UnknownName, match="did you mean 'greedy'"):
        require_method("greeedy")
    with pytest.raises(BadInput, match=message):
        METHODS[method].search(PROBLEM, options)
