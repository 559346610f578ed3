"""Universal components, what single ablations say, and interactions between pairs."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from effect_matrices import effects_of, matrix
from simulated import COMPONENTS, SimulatedModel, SimulatedTask

from broca.errors import BadInput
from broca.measurement import Measurement
from broca.verification import Trial
from broca.verification.effects import ablate_alone, pairwise, require_count, universal

CAPABILITIES = {"adding": "sums", "sorting": "words", "rhyming": "words", "facts": "facts"}
EVERYONE, SUMS = "L0H1", "L3H4"


def test_universal_hurts_most_tasks():
    """Four harmed tasks of five make a component universal; small or uncertain effects do not.

    Only usable tasks count, and one capability has nothing universal.
    """
    cells = {(task, 0): -0.3 for task in (0, 1, 2, 3)} | {(task, 1): -0.9 for task in (2, 3)}
    cells |= {(task, 2): -0.04 for task in range(5)} | {(task, 3): -0.1 for task in range(5)}
    assert universal(matrix(effects_of(cells))) == [0, 3]
    assert universal(matrix(effects_of(cells), spread=0.1)) == [0]
    everywhere = np.full((5, 3), -0.3)
    assert universal(matrix(everywhere, capabilities=("sums",) * 5)) == []
    assert universal(matrix(everywhere, usable=[True, True, False, False, False])) == []
    cells = {(0, 0): -0.3, (2, 0): -0.3, (3, 1): -0.3, (4, 1): -0.3, (0, 1): -0.3}
    measured = matrix(effects_of(cells), usable=[True, False, True, False, True])
    assert universal(measured) == [0, 1]
    assert not measured.hurts[[1, 3]].any()


def test_rule_by_hand_on_random_matrices():
    """On random matrices the rule equals its three conditions, computed for each component."""
    rng = np.random.default_rng(1)
    universal_count = 0
    for seed in range(20):
        measured = matrix(rng.uniform(-0.4, 0.02, (5, 12)), seed=seed)
        spread = measured.resampled.std(axis=0)
        expected = set()
        for column in range(12):
            effects = measured.effects[:, column]
            hurt = (effects + 1.645 * spread[:, column] < 0) & (effects <= -0.05)
            sums = measured.resampled[:, :2, column].mean(axis=1).std()
            pooled = [effects[:2].mean(), *effects[2:]]
            sure = [pooled[0] + 1.645 * sums < 0, *(effects + 1.645 * spread[:, column] < 0)[2:]]
            reached = sum(s and value <= -0.05 for s, value in zip(sure, pooled, strict=True))
            others = sorted(pooled)[1:]
            if hurt.sum() >= 4 and reached >= 3 and np.mean(others) <= min(pooled) / 2:
                expected.add(column)
        assert set(universal(measured)) == expected
        universal_count += len(expected)
    assert 20 < universal_count < 200


@dataclass(frozen=True)
class Task(SimulatedTask):
    """A task with a capability, which is at chance below a score of one half."""

    capability: str = ""

    def at_chance(self, score, *, items):
        """Whether the score is too low to show damage."""
        assert items == 80
        return score < 0.5


def alone_in_model(*names, before=None, higher_is_better=True):
    """Returns the effects of heads in a model of four tasks, with the trial and the model."""
    heads = {name: {SUMS: 0.4} if name == "adding" else {} for name in CAPABILITIES}
    model = SimulatedModel(heads, everyone={EVERYONE: 0.4})
    benchmarks = {
        name: Task(capability=capability, higher_is_better=higher_is_better)
        for name, capability in CAPABILITIES.items()
    }
    places = {name: np.arange(80) + 80 * number for number, name in enumerate(CAPABILITIES)}
    trial = Trial("adding", (), ("sorting", "rhyming", "facts"), benchmarks, places, model.items)
    shared = ablate_alone(
        [COMPONENTS.column(name) for name in names],
        COMPONENTS,
        trial,
        model.execute,
        {**dict.fromkeys(CAPABILITIES, 0.95), **(before or {})},
        seed=0,
    )
    return shared, SimpleNamespace(trial=trial, model=model)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_each_is_ablated_alone_on_some_items_of_every_task(higher_is_better):
    """Each head is ablated on 60 of 80 items of every task; effects are negated losses."""
    (effects, _), setup = alone_in_model(EVERYONE, SUMS, "L5H5", higher_is_better=higher_is_better)
    assert setup.model.rows == 4 * 60 * len(CAPABILITIES)
    assert list(effects) == [EVERYONE, SUMS, "L5H5"]
    assert effects["L5H5"] == dict.fromkeys(CAPABILITIES, 0.0)
    assert str(effects["L5H5"]["facts"]) == "0.0"
    masks = np.stack([COMPONENTS.mask(()), COMPONENTS.mask([SUMS])])
    before, after = setup.trial.responses(
        setup.model.execute, masks, {"adding": setup.trial.at_most(60)["adding"]}
    )["adding"]
    assert effects[SUMS]["adding"] == pytest.approx(after.mean() - before.mean())
    assert effects[SUMS]["sorting"] == 0.0


def test_universal_is_what_most_tasks_need():
    """Only a head that most tasks need is universal; with one usable capability none is."""
    assert alone_in_model(SUMS, EVERYONE)[0][1] == (EVERYONE,)
    assert alone_in_model(EVERYONE, before={"adding": 0.1, "facts": 0.1})[0][1] == ()


def test_nothing_to_ask_about_measures_nothing():
    """Without heads no row is measured."""
    shared, setup = alone_in_model()
    assert (shared, setup.model.rows) == (({}, ()), 0)


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
