"""Plans become jobs, and answers become responses."""

from dataclasses import replace

import numpy as np
import pytest
from direct import DirectExecutor
from executors.counting import Counting, Numbers, bank_of

from broca.engine import Ablation
from broca.errors import TaskUnusable
from broca.measurement import Plan


def job_of(plan, **options):
    """Returns the job of a plan."""
    runner = Counting()
    DirectExecutor(runner, bank_of(), **options).run(plan)
    return runner.jobs[0]


def numbers_of(plan):
    """Returns the runner's number of each row: a weighted sum of what is ablated, and the item."""
    return plan.masks[plan.mask_index] @ np.array([-1, 0, 1]) + plan.item_index / 7


@pytest.fixture
def plan():
    """Four rows under two masks of three components, with one item twice."""
    masks = np.array([[False, False, False], [True, False, True]])
    return Plan(masks, np.array([0, 1, 1, 0]), np.array([2, 0, 2, 3]))


def test_every_request_of_every_row_is_asked_under_the_rows_mask(plan):
    """Requests stand row by row; a gate is the plan's or the ablation's scale."""
    job, ablation = job_of(plan), Ablation(scale=0.25)
    assert job.gates.tolist() == [[1, 1, 1], [0, 1, 0]]
    assert job.gate_index.tolist() == [0, 1, 1, 0]
    assert [requests[0].context[0] for requests in job.requests] == [2, 0, 2, 3]
    assert job_of(plan, ablation=ablation).gates[1].tolist() == [0.25, 1, 0.25]
    assert job_of(replace(plan, scale=-1.0), ablation=ablation).gates[1].tolist() == [-1, 1, -1]


@pytest.mark.parametrize("higher", [True, False])
def test_responses_are_the_tasks_scores_and_higher_is_better(plan, higher):
    """Responses are the task's scores, negated if lower is better."""
    bank = bank_of(Numbers(higher_is_better=higher, bonus=0.5))
    measured = DirectExecutor(Counting(), bank).run(plan)
    scores = numbers_of(plan) + 0.5
    np.testing.assert_allclose(measured.responses, scores if higher else -scores)
    np.testing.assert_allclose([output.value for (output,) in measured.outputs], numbers_of(plan))


def test_margins_are_asked_where_they_are_wanted_and_missing_ones_are_named(plan):
    """A margin response is the task's margin; an item without a margin is refused by its number."""
    executor = DirectExecutor(Counting(), bank_of(Numbers(unanswered=3)), response="margin")
    first = Plan(plan.masks, plan.mask_index[:3], plan.item_index[:3])
    np.testing.assert_allclose(executor.run(first).responses, numbers_of(first))
    with pytest.raises(TaskUnusable, match="item 3 of task 'task' has no answer"):
        executor.run(plan)
    assert [len(outputs) for outputs in executor.answers(plan)] == [1] * 4


def test_gradients_of_probabilities_follow_the_chain_rule(plan):
    """A probability's gradient is the margin's gradient times the probability's derivative."""
    runner, plan = Counting(), replace(plan, gradients=True)
    measured = DirectExecutor(runner, bank_of(), response="probability").run(plan)
    assert runner.jobs[0].requests == ()
    slopes = np.array([-1, 0, 1]) * plan.item_index[:, None]
    for row, (margin, value) in enumerate(
        zip(runner.jobs[0].margins, numbers_of(plan), strict=True)
    ):
        low, high = (margin.probability(value + step) for step in (-1e-5, 1e-5))
        expected = slopes[row] * (high - low) / 2e-5
        np.testing.assert_allclose(measured.gradients[row], expected, rtol=1e-4)
        assert measured.responses[row] == pytest.approx(margin.probability(value))


def test_donors_depend_on_mask_and_item_and_are_never_the_items_own():
    """Donors depend on seed, mask and item alone, and an item never gets itself as donor."""
    plan = Plan.crossed(np.random.default_rng(0).random((20, 5)) < 0.5, np.arange(6))
    options = {"donors": [0, 0, 1, 2, 3, 4, 5, 5], "donor_keys": range(10, 40)}

    def drawn(plan, seed=4):
        ablation = Ablation("resample", seed=seed)
        return job_of(plan, ablation=ablation, **options).donor_index

    donors = drawn(plan).reshape(20, 6)
    assert not (np.array(options["donors"])[donors] == np.arange(6)).any()
    assert set(donors.ravel().tolist()) == set(range(8))
    assert (donors[0] != donors[1]).any()
    backwards = Plan(plan.masks, plan.mask_index[::-1].copy(), plan.item_index[::-1].copy())
    np.testing.assert_array_equal(drawn(backwards).reshape(20, 6)[::-1, ::-1], donors)
    part = Plan(plan.masks, plan.mask_index[6:12], plan.item_index[6:12])  # rows of mask 1
    np.testing.assert_array_equal(drawn(part), donors[1])
    assert (drawn(plan, seed=5) != donors.ravel()).any()
