"""The effects of single ablations on every task, and the universal components among them."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from simulated import COMPONENTS, SimulatedModel, SimulatedTask

from broca.verification import Trial
from broca.verification.universal import ablate_alone

CAPABILITIES = {"adding": "sums", "sorting": "words", "rhyming": "words", "facts": "facts"}
EVERYONE, SUMS = "L0H1", "L3H4"


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
    trial = Trial("adding", (), ("sorting", "rhyming", "facts"), benchmarks, places)
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
    shared, setup = alone_in_model(EVERYONE, SUMS, "L5H5", higher_is_better=higher_is_better)
    assert setup.model.rows == 4 * 60 * len(CAPABILITIES)
    assert list(shared.effects) == [EVERYONE, SUMS, "L5H5"]
    assert shared.effects["L5H5"] == dict.fromkeys(CAPABILITIES, 0.0)
    assert str(shared.effects["L5H5"]["facts"]) == "0.0"
    masks = np.stack([COMPONENTS.mask(()), COMPONENTS.mask([SUMS])])
    before, after = setup.trial.responses(
        setup.model.execute, masks, {"adding": setup.trial.at_most(60)["adding"]}
    )["adding"]
    assert shared.effects[SUMS]["adding"] == pytest.approx(after.mean() - before.mean())
    assert shared.effects[SUMS]["sorting"] == 0.0


def test_universal_is_what_most_tasks_need():
    """Only a head that most tasks need is universal; with one usable capability none is."""
    shared, _ = alone_in_model(SUMS, EVERYONE)
    assert shared.universal == (EVERYONE,)
    shared, _ = alone_in_model(EVERYONE, before={"adding": 0.1, "facts": 0.1})
    assert shared.universal == ()


def test_nothing_to_ask_about_measures_nothing():
    """Without heads no row is measured."""
    shared, setup = alone_in_model()
    assert (shared.effects, shared.universal, setup.model.rows) == ({}, (), 0)
