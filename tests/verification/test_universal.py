"""What the others need too: each component alone, and which are universal."""

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
    """A task with a capability; at chance below a half."""

    capability: str = ""

    def at_chance(self, score, *, items):
        """Whether it can show no damage."""
        assert items == 80
        return score < 0.5


def asked(*names, before=None, higher_is_better=True):
    """What a model of four tasks shows of some heads, and how many rows that took."""
    heads = {name: {SUMS: 0.4} if name == "adding" else {} for name in CAPABILITIES}
    model = SimulatedModel(heads, everyone={EVERYONE: 0.4})
    benchmarks = {
        name: Task(capability=one, higher_is_better=higher_is_better)
        for name, one in CAPABILITIES.items()
    }
    places = {name: np.arange(80) + 80 * number for number, name in enumerate(CAPABILITIES)}
    trial = Trial("adding", (), ("sorting", "rhyming", "facts"), benchmarks, places)
    found = ablate_alone(
        [COMPONENTS.column(name) for name in names],
        COMPONENTS,
        trial,
        model.execute,
        {**dict.fromkeys(CAPABILITIES, 0.95), **(before or {})},
        seed=0,
    )
    return found, SimpleNamespace(trial=trial, model=model)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_each_is_ablated_alone_on_some_items_of_every_task(higher_is_better):
    """Sixty of eighty, evenly; the effects are minus the losses."""
    found, made = asked(EVERYONE, SUMS, "L5H5", higher_is_better=higher_is_better)
    assert made.model.rows == 4 * 60 * len(CAPABILITIES)
    assert list(found.effects) == [EVERYONE, SUMS, "L5H5"]
    assert found.effects["L5H5"] == dict.fromkeys(CAPABILITIES, 0.0)
    assert str(found.effects["L5H5"]["facts"]) == "0.0"
    masks = np.stack([COMPONENTS.mask(()), COMPONENTS.mask([SUMS])])
    before, after = made.trial.responses(
        made.model.execute, masks, {"adding": made.trial.some(60)["adding"]}
    )["adding"]
    assert found.effects[SUMS]["adding"] == pytest.approx(after.mean() - before.mean())
    assert found.effects[SUMS]["sorting"] == 0.0


def test_universal_is_what_most_tasks_need():
    """And not what one needs; nor where only one capability is left that could show it."""
    found, _ = asked(SUMS, EVERYONE)
    assert found.universal == (EVERYONE,)
    found, _ = asked(EVERYONE, before={"adding": 0.1, "facts": 0.1})
    assert found.universal == ()


def test_nothing_to_ask_about_measures_nothing():
    """No rows."""
    found, made = asked()
    assert (found.effects, found.universal, made.model.rows) == ({}, (), 0)
