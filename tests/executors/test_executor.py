"""Plans become jobs, and answers become responses."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from broca.engine import Ablation, Answers, Engine
from broca.errors import TaskUnusable
from broca.executors.executor import Executor
from broca.measurement import Plan
from broca.tasks import Item, LogLikelihood, Margin, Request


@dataclass(frozen=True)
class Choices:
    """A task of two choices, scored by the difference of their log-likelihoods."""

    name: str = "choices"
    higher_is_better: bool = True
    rescored: bool = False
    metric: str = "difference"

    def score(self, item, outputs):
        """Returns the first choice's value minus the second's."""
        return outputs[0].value - outputs[1].value

    def margin(self, item):
        """Returns a margin of the item's requests; items with odd numbers have none."""
        return None if item.number % 2 else Margin(item.requests, 0)


def item(number):
    """Returns an item with two requests."""
    requests = tuple(Request("loglikelihood", (number, 7), (choice,)) for choice in (1, 2))
    return Item("choices", number, f"prompt {number}", "a", requests)


def bank_of(count=4, task=None):
    """Returns items of one task."""
    return [(task or Choices(), item(number)) for number in range(count)]


class Recorder:
    """A runner that records jobs; answers are the positions of their requests."""

    concurrent = False

    def __init__(self, slopes=None):
        self.jobs, self.slopes = [], slopes

    def stream(self, jobs, *, rows):
        """Answers every job."""
        for job in jobs:
            self.jobs.append(job)
            if job.margins:
                yield Answers(job.number, 0, (), *self.slopes)
            else:
                pairs = np.arange(2.0 * len(job.requests)).reshape(-1, 2).tolist()
                outputs = tuple(tuple(LogLikelihood(n, False) for n in pair) for pair in pairs)
                yield Answers(job.number, 0, outputs)


def job_of(plan, bank=None, **options):
    """Returns the job of a plan."""
    runner = Recorder()
    Executor(runner, bank or bank_of(), **options).run(plan)
    return runner.jobs[0]


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
    assert [requests[1].context[0] for requests in job.requests] == [2, 0, 2, 3]
    assert job_of(plan, ablation=ablation).gates[1].tolist() == [0.25, 1, 0.25]
    assert job_of(replace(plan, scale=-1.0), ablation=ablation).gates[1].tolist() == [-1, 1, -1]


@pytest.mark.parametrize("higher", [True, False])
def test_responses_are_the_tasks_scores_and_higher_is_better(plan, higher):
    """Responses are the task's scores, negated if lower is better."""
    bank = bank_of(task=Choices(higher_is_better=higher))
    measured = Executor(Recorder(), bank, keep_outputs=True).run(plan)
    assert measured.responses.tolist() == [-1.0 if higher else 1.0] * 4
    assert [len(outputs) for outputs in measured.outputs] == [2] * 4
    assert measured.outputs[3][1].value == 7.0


def test_margins_are_asked_where_they_are_wanted_and_missing_ones_are_named(plan):
    """A margin response is the task's margin; an item without a margin is refused by its number."""
    executor = Executor(Recorder(), bank_of(), response="margin")
    even = Plan(plan.masks, plan.mask_index[:3], plan.item_index[:3])
    pair = (LogLikelihood(4.0, False), LogLikelihood(5.0, False))
    assert executor.run(even).responses[2] == Choices().margin(item(2)).of_answers(pair)
    with pytest.raises(TaskUnusable, match="item 3 of task 'choices' has no answer"):
        executor.run(plan)
    assert [len(outputs) for outputs in executor.answers(plan)] == [2] * 4


def test_gradients_of_probabilities_follow_the_chain_rule(plan):
    """A probability's gradient is the margin's gradient times the probability's derivative."""
    even = Plan(plan.masks, np.array([0, 1]), np.array([0, 2]), gradients=True)
    values = np.array([0.3, -1.2])
    slopes = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], dtype=np.float32)
    runner = Recorder((values, slopes))
    measured = Executor(runner, bank_of(), response="probability").run(even)
    assert runner.jobs[0].requests == ()
    for row, margin in enumerate(runner.jobs[0].margins):
        low, high = (margin.probability(values[row] + step) for step in (-1e-5, 1e-5))
        expected = slopes[row] * (high - low) / 2e-5
        np.testing.assert_allclose(measured.gradients[row], expected, rtol=1e-4)
        assert measured.responses[row] == margin.probability(values[row])


def test_donors_depend_on_mask_and_item_and_are_never_the_items_own():
    """Donors depend on seed, mask and item alone, and an item never gets itself as donor."""
    masks = np.random.default_rng(0).random((3, 5)) < 0.5
    plan = Plan.crossed(masks, np.arange(6))
    options = {"donors": range(6), "donor_keys": range(10, 16)}

    def drawn(plan, seed=4):
        ablation = Ablation("resample", seed=seed)
        return job_of(plan, bank_of(6), ablation=ablation, **options).donor_index

    donors = drawn(plan).reshape(3, 6)
    assert not (donors == np.arange(6)).any()
    assert (donors[0] != donors[1]).any()
    backwards = Plan(plan.masks, plan.mask_index[::-1].copy(), plan.item_index[::-1].copy())
    np.testing.assert_array_equal(drawn(backwards).reshape(3, 6)[::-1, ::-1], donors)
    part = Plan(plan.masks, plan.mask_index[6:12], plan.item_index[6:12])  # rows of mask 1
    np.testing.assert_array_equal(drawn(part), donors[1])
    assert (drawn(plan, seed=5) != donors.ravel()).any()


def test_margin_is_high_where_the_answer_is_right(reference, bank):
    """Correct items have margins above 0 for choices, and above -0.7 nats per token for answers."""
    plan = Plan.crossed(np.zeros((1, 96), dtype=bool), np.arange(12))
    accuracy = Executor(Engine(reference), bank).run(plan).responses
    margin = Executor(Engine(reference), bank, response="margin").run(plan).responses
    choice = np.arange(12) >= 6
    assert (margin[choice & (accuracy == 1)] > 0).all()
    assert (margin[~choice & (accuracy == 1)] > -0.7).all()  # nats per token


@pytest.mark.parametrize("response", ["margin", "probability"])
def test_gradients_hold_where_gates_are_half_closed(reference, bank, response):
    """With all gates at 0.7, the sum of the slopes equals a central difference in the scale."""
    executor = Executor(Engine(reference), bank, response=response)
    plan = Plan.crossed(np.ones((1, 96), dtype=bool), np.arange(12))
    step = 0.002
    low, high = (
        executor.run(replace(plan, scale=scale)).responses for scale in (0.7 - step, 0.7 + step)
    )
    slopes = executor.run(replace(plan, scale=0.7, gradients=True)).slopes().sum(axis=1)
    expected = (high - low) / (2 * step)
    np.testing.assert_allclose(slopes, expected, atol=0.01 * np.abs(expected).max())
