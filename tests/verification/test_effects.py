"""Universal components, and what single ablations say."""

import numpy as np
import pytest
from simulated import COMPONENTS, SimulatedModel, SimulatedTask

from broca.measurement import Measurement
from broca.verification import Trial
from broca.verification.effects import ablate_alone

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
