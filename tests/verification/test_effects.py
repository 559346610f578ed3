"""Universal components, what single ablations say, and interactions between pairs."""

import numpy as np
import pytest
from simulated import COMPONENTS, SimulatedModel, SimulatedTask

from broca.errors import BadInput
from broca.measurement import Measurement
from broca.verification import Trial
from broca.verification.effects import ablate_alone, pairwise, require_count

EVERYONE, SUMS = "L0H1", "L3H4"


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_each_is_ablated_alone_on_some_items_of_every_task(higher_is_better):
    """Each head is ablated on 60 of 80 items of every task; effects are negated losses.

    Only the head that most tasks need is universal.
    """
    names = ("adding", "sorting", "rhyming", "facts")
    heads = {name: {SUMS: 0.4} if name == "adding" else {} for name in names}
    model = SimulatedModel(heads, everyone={EVERYONE: 0.4})
    tasks = {
        name: SimulatedTask(capability=name, higher_is_better=higher_is_better) for name in names
    }
    places = {name: np.arange(80) + 80 * number for number, name in enumerate(names)}
    trial = Trial("adding", (), names[1:], tasks, places, model.items)
    columns = [COMPONENTS.column(name) for name in (EVERYONE, SUMS, "L5H5")]
    intact = dict.fromkeys(names, 0.95)
    effects, found = ablate_alone(columns, COMPONENTS, trial, model.execute, intact, seed=0)
    assert found == (EVERYONE,)
    assert model.rows == 4 * 60 * len(names)
    assert list(effects) == [EVERYONE, SUMS, "L5H5"]
    assert effects["L5H5"] == dict.fromkeys(names, 0.0)
    masks = np.stack([COMPONENTS.mask(()), COMPONENTS.mask([SUMS])])
    sixty = {"adding": trial.at_most(60)["adding"]}
    before, after = trial.responses(model.execute, masks, sixty)["adding"]
    assert effects[SUMS]["adding"] == pytest.approx(after.mean() - before.mean())
    assert effects[SUMS]["sorting"] == 0.0


NAMES = ("L0H0", "L0H1", "L0H2", "L0H3")
ITEMS = np.arange(5, 45)


def execute(plan):
    """Returns responses in which 1 and 3 stand in for each other and 0 and 3 overlap."""
    masks = plan.masks[plan.mask_index]
    score = 1 - 0.2 * masks[:, 0] - 0.1 * masks[:, 1] - 0.3 * masks[:, 3]
    score -= 0.4 * (masks[:, 1] & masks[:, 3])
    score += 0.1 * (masks[:, 0] & masks[:, 3])
    noise = np.random.default_rng(0).normal(0, 0.05, len(plan))
    return Measurement(plan, score + noise)


def test_interaction_is_what_pairs_lose_beyond_the_sum():
    """Planted interactions come first and lie within their intervals."""
    pairs = pairwise(NAMES, (3, 0, 1), ITEMS, execute)
    assert [{pair.first, pair.second} for pair in pairs] == [
        {"L0H3", "L0H1"},
        {"L0H3", "L0H0"},
        {"L0H0", "L0H1"},
    ]
    for pair, true in zip(pairs, (-0.4, 0.1, 0.0), strict=True):
        assert pair.ci[0] < true < pair.ci[1]
        assert pair.interaction == pytest.approx(
            pair.joint_effect - pair.first_effect - pair.second_effect
        )
    assert pairs[0].ci[1] < 0 < pairs[1].ci[0]
    assert pairwise(NAMES, (), ITEMS, lambda plan: pytest.fail("measured")) == ()


def test_intervals_hold_in_nine_of_ten_draws():
    """In 400 draws without an interaction, 86 to 97 % of the intervals contain 0."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):

        def chances(plan):
            alone = 1 - 0.2 * plan.masks[plan.mask_index].sum(axis=1)
            return Measurement(plan, (rng.random(len(plan)) < alone).astype(float))

        (pair,) = pairwise(NAMES, (0, 1), ITEMS, chances)
        held.append(pair.ci[0] <= 0 <= pair.ci[1])
    assert 0.86 <= np.mean(held) <= 0.97


def test_equal_answers_leave_some_doubt():
    """Forty equal items leave an interval around 0; a constant response has the interval (0, 0)."""

    def measured(score):
        def execute(plan):
            return Measurement(plan, score(plan.masks)[plan.mask_index].astype(float))

        (pair,) = pairwise(NAMES, (1, 2), ITEMS, execute)
        return pair

    lost = measured(lambda masks: 1 - masks[:, 1])
    assert lost.interaction == 0
    assert lost.ci[0] < 0 < lost.ci[1]
    assert measured(lambda masks: np.ones(len(masks))).ci == (0.0, 0.0)


@pytest.mark.parametrize("count", [-1, 1, 5, 21])
def test_numbers_without_pairs_are_refused(count):
    """Numbers other than 0 and 2 to the maximum are refused; the message states the range."""
    with pytest.raises(BadInput, match="2 to 4"):
        require_count(count, 4)
    require_count(0, 4)
    require_count(4, 4)
