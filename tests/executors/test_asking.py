"""Plans become questions and answers become responses, without a model."""

from dataclasses import dataclass

import numpy as np
import pytest

from broca.engine import Ablation
from broca.errors import BadLogits, TaskUnusable
from broca.executors import Asker
from broca.executors.asking import Answers, Observations, Questions, answer
from broca.measurement import Plan
from broca.tasks import Generation, Item, LogLikelihood, Margin, Request


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
        if item.number % 2:
            return None
        return Margin(item.requests, 0)


def item(number):
    """Returns an item with two requests."""
    requests = tuple(Request("loglikelihood", (number, 7), (choice,)) for choice in (1, 2))
    return Item("choices", number, f"prompt {number}", "a", requests)


def bank(count=4, task=None):
    """Returns items of one task."""
    return [(task or Choices(), item(number)) for number in range(count)]


@pytest.fixture
def plan():
    """Four rows under two masks of three components, with one item twice."""
    masks = np.array([[False, False, False], [True, False, True]])
    return Plan(masks, np.array([0, 1, 1, 0]), np.array([2, 0, 2, 3]))


def answered(questions):
    """Returns answers whose values are the positions of their requests."""
    return Answers(tuple(LogLikelihood(float(n), False) for n in range(len(questions.requests))))


def test_every_request_of_every_row_is_asked_under_the_rows_mask(plan):
    """Requests stand row by row, and gates are 0 where the row's mask ablates."""
    questions = Asker(bank()).questions(plan)
    assert questions.gates.tolist() == [[1, 1, 1], [0, 1, 0]]
    assert questions.row_index.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert questions.gate_index.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    contexts = [request.context[0] for request in questions.requests]
    assert contexts == [2, 2, 0, 0, 2, 2, 3, 3]


def test_a_plan_or_the_run_sets_the_gate_of_ablated_components(plan):
    """Ablated components get the gate of the plan's scale, else that of the run's ablation."""
    asker = Asker(bank(), ablation=Ablation(scale=0.25))
    assert asker.questions(plan).gates[1].tolist() == [0.25, 1, 0.25]
    scaled = Plan(plan.masks, plan.mask_index, plan.item_index, scale=-1.0)
    assert asker.questions(scaled).gates[1].tolist() == [-1, 1, -1]


@pytest.mark.parametrize("higher", [True, False])
def test_responses_are_the_tasks_scores_and_higher_is_better(plan, higher):
    """Responses are the task's scores, negated if lower is better."""
    asker = Asker(bank(task=Choices(higher_is_better=higher)), keep_outputs=True)
    questions = asker.questions(plan)
    measured = asker.measurement(plan, questions, answered(questions))
    assert measured.responses.tolist() == [-1.0 if higher else 1.0] * 4
    assert [len(outputs) for outputs in measured.outputs] == [2] * 4
    assert measured.outputs[3][1].value == 7.0


def test_margins_are_asked_where_they_are_wanted_and_missing_ones_are_named(plan):
    """A margin response is the task's margin; an item without a margin is refused by its number."""
    asker = Asker(bank(), response="margin")
    even = Plan(plan.masks, plan.mask_index[:3], plan.item_index[:3])
    questions = asker.questions(even)
    margin = Choices().margin(item(2))
    measured = asker.measurement(even, questions, answered(questions))
    pair = (LogLikelihood(4.0, False), LogLikelihood(5.0, False))
    assert measured.responses[2] == margin.of_answers(pair)
    with pytest.raises(TaskUnusable, match="item 3 of task 'choices' has no answer"):
        asker.questions(plan)
    assert len(asker.questions(plan, outputs=True).requests) == 8


def test_gradients_of_probabilities_follow_the_chain_rule(plan):
    """A probability's gradient is the margin's gradient times the probability's derivative."""
    even = Plan(plan.masks, np.array([0, 1]), np.array([0, 2]), gradients=True)
    asker = Asker(bank(), response="probability")
    questions = asker.questions(even)
    assert questions.requests == ()
    values = np.array([0.3, -1.2])
    slopes = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], dtype=np.float32)
    measured = asker.measurement(even, questions, Answers(values=values, gradients=slopes))
    for row, margin in enumerate(questions.margins):
        low, high = (margin.probability(values[row] + step) for step in (-1e-5, 1e-5))
        np.testing.assert_allclose(
            measured.gradients[row], slopes[row] * (high - low) / 2e-5, rtol=1e-4
        )
        assert measured.responses[row] == margin.probability(values[row])


def test_donors_depend_on_mask_and_item_and_are_never_the_items_own():
    """Donors depend on seed, mask and item alone, and an item never gets itself as donor."""
    masks = np.random.default_rng(0).random((3, 5)) < 0.5
    plan = Plan.crossed(masks, np.arange(6))
    ablation = Ablation("resample", seed=4)
    asker = Asker(bank(6), ablation=ablation, donors=range(6), donor_keys=range(10, 16))
    drawn = asker.questions(plan).donor_index.reshape(3, 6, 2)
    assert (drawn[..., 0] == drawn[..., 1]).all()
    assert not (drawn[..., 0] == np.arange(6)).any()
    backwards = Plan(plan.masks, plan.mask_index[::-1].copy(), plan.item_index[::-1].copy())
    reversed_rows = asker.questions(backwards).donor_index.reshape(3, 6, 2)
    np.testing.assert_array_equal(reversed_rows[::-1, ::-1, ::-1], drawn)
    part = Plan(plan.masks, plan.mask_index[6:12], plan.item_index[6:12])  # rows of mask 1
    np.testing.assert_array_equal(asker.questions(part).donor_index.reshape(6, 2), drawn[1])
    other_seed = Asker(bank(6), ablation=Ablation("resample", seed=5), donors=range(6))
    assert (other_seed.questions(plan).donor_index.reshape(3, 6, 2) != drawn).any()


def test_bad_logits_name_the_item_and_what_was_ablated(plan):
    """An error in a request names its item and the number of ablated components."""
    asker = Asker(bank())
    questions = asker.questions(plan)
    error = asker.named(BadLogits("not finite", request=4), plan, questions)
    assert str(error).startswith("item 2 of task 'choices' with 2 components ablated: not finite")
    assert error.request == 4


def test_rows_of_a_callers_metric_are_marked(plan):
    """A row is marked if its task is scored by the caller's metric."""
    mixed = [(Choices(rescored=number == 2), item(number)) for number in range(4)]
    assert Asker(mixed).rescored(plan).tolist() == [True, False, True, False]


class Engine:
    """An engine that returns placeholder answers."""

    def run(self, requests, *where):
        """Returns a generation for each request."""
        return [Generation(str(request.context), 1) for request in requests]

    def differentiate(self, margins, *where):
        """Returns one value and one gradient for each margin."""
        return np.zeros(len(margins)), np.ones((len(margins), 3), dtype=np.float32)


@dataclass(frozen=True)
class Position:
    """An observation that is a number."""

    number: int

    @classmethod
    def observe(cls, engine, observations):
        """Returns the numbers as vectors of one entry."""
        return [np.array([observation.number], dtype=np.float32) for observation in observations]


def test_an_engine_is_asked_by_the_kind_of_job(plan):
    """Requests are run, margins are differentiated, and observations are taken by their class."""
    asker = Asker(bank())
    assert len(answer(Engine(), asker.questions(plan)).outputs) == 8
    even = Plan(plan.masks, np.array([0, 1]), np.array([0, 2]), gradients=True)
    assert answer(Engine(), asker.questions(even)).gradients.shape == (2, 3)
    job = Observations((Position(3), Position(1)))
    assert job.rows == 2
    assert [vector.tolist() for vector in answer(Engine(), job).vectors] == [[3.0], [1.0]]


def test_questions_without_rows_have_no_outputs():
    """An empty plan has an empty list of outputs."""
    nothing = Questions(np.ones((1, 3), dtype=np.float32), *[np.zeros(0, dtype=np.intp)] * 3, 0)
    assert Asker(bank()).outputs(nothing, Answers()) == []
