"""The executor of the current process: responses, costs, donors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from broca.engine import Ablation, Engine, donor_activations
from broca.errors import BadLogits
from broca.executors import Asker, LocalExecutor
from broca.measurement import Plan
from broca.models import GatedModel


@pytest.fixture(scope="module")
def masks():
    """The intact mask and three random ones."""
    masks = np.random.default_rng(0).random((4, 96)) < 0.1
    masks[0] = False
    return masks


def test_margin_is_high_where_the_answer_is_right(reference, bank, masks):
    """Correct items have margins above 0 for choices, and above -0.7 nats per token for answers."""
    plan = Plan.crossed(masks[:1], np.arange(12))
    accuracy = LocalExecutor(Engine(reference), Asker(bank)).run(plan).responses
    margin = LocalExecutor(Engine(reference), Asker(bank, response="margin")).run(plan).responses
    choice = np.arange(12) >= 6
    assert (margin[choice & (accuracy == 1)] > 0).all()
    assert (margin[~choice & (accuracy == 1)] > -0.7).all()  # nats per token


def test_gradients_come_with_the_margins_and_cost_three_rows(reference, bank, masks):
    """A row with its gradient costs three rows, and its response equals the margin."""
    crossed = Plan.crossed(masks, np.arange(12))
    executor = LocalExecutor(Engine(reference), Asker(bank, response="margin"))
    plain = executor.run(crossed).responses
    plan = Plan(crossed.masks, crossed.mask_index, crossed.item_index, gradients=True)
    measured = executor.run(plan)
    assert (crossed.cost, plan.cost) == (48, 3 * 48)
    np.testing.assert_allclose(measured.responses, plain, atol=1e-3)
    assert measured.gradients.shape == (48, 96)
    assert np.abs(measured.gradients).max() > 0


def test_a_plan_may_set_the_gate_of_its_ablated_components(reference, bank, masks):
    """A plan's scale acts like an ablation of that scale; other plans keep the run's."""
    plan = replace(Plan.crossed(masks, np.arange(12)), scale=0.4)
    executor = LocalExecutor(Engine(reference), Asker(bank, response="margin"))
    scaled = LocalExecutor(
        Engine(reference), Asker(bank, response="margin", ablation=Ablation(scale=0.4))
    )
    expected = scaled.run(replace(plan, scale=None)).responses
    np.testing.assert_array_equal(executor.run(plan).responses, expected)
    assert not np.allclose(executor.run(replace(plan, scale=None)).responses, expected)


@pytest.mark.parametrize("response", ["margin", "probability"])
def test_gradients_hold_where_gates_are_half_closed(reference, bank, response):
    """With all gates at 0.7, the sum of the slopes equals a central difference in the scale."""
    executor = LocalExecutor(Engine(reference), Asker(bank, response=response))
    plan = Plan.crossed(np.ones((1, 96), dtype=bool), np.arange(12))
    step = 0.002
    low, high = (
        executor.run(replace(plan, scale=scale)).responses for scale in (0.7 - step, 0.7 + step)
    )
    slopes = executor.run(replace(plan, scale=0.7, gradients=True)).slopes().sum(axis=1)
    expected = (high - low) / (2 * step)
    np.testing.assert_allclose(slopes, expected, atol=0.01 * np.abs(expected).max())


def test_infinite_logits_name_the_item(reference, bank, masks, monkeypatch):
    """NaN logits raise an error that names the task and item of their row."""
    forward = GatedModel.forward

    def poisoned(self, tokens, *args, **kwargs):
        logits, cache = forward(self, tokens, *args, **kwargs)
        letters = torch.tensor(bank[8][1].requests[0].context[-3:])
        logits[(tokens[:, -3:] == letters).all(1) if tokens.shape[1] > 2 else []] = float("nan")
        return logits, cache

    monkeypatch.setattr(GatedModel, "forward", poisoned)
    executor = LocalExecutor(Engine(reference), Asker(bank))
    with pytest.raises(BadLogits, match=r"item \d+ of task 'mc_biology' with 0 components ablated"):
        executor.run(Plan.crossed(masks[:1], np.arange(12)))


def test_resampled_rows_never_get_their_own_item(reference, bank, masks):
    """Donors follow from mask and item, differ between masks, and do not depend on row order."""
    donors = list(range(12))
    ablation = Ablation("resample", seed=1)
    activations = donor_activations(
        reference, [bank[d][1].requests[0].context for d in donors], ablation
    )
    engine = Engine(reference, donors=activations)
    executor = LocalExecutor(engine, Asker(bank, ablation=ablation, donors=donors))
    plan = Plan.crossed(masks, np.arange(12))
    chosen = executor._asker._donor_index(plan).reshape(4, 12)
    assert not (chosen == np.arange(12)).any()
    assert (chosen[1] != chosen[2]).any()
    np.testing.assert_array_equal(executor._asker._donor_index(plan).reshape(4, 12), chosen)
    first = executor.run(plan).responses
    np.testing.assert_array_equal(first, executor.run(plan).responses)
    # the order of the rows does not matter
    order = np.random.default_rng(2).permutation(48)
    shuffled = Plan(plan.masks, plan.mask_index[order], plan.item_index[order])
    np.testing.assert_array_equal(executor.run(shuffled).responses, first[order])
