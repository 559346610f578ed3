"""`neurons reliability`: do an item's neurons change p(answer)?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.opening import opened
from broca.neurons.scaling import factors_of, move
from broca.neurons.selection import EMPTY
from broca.neurons.sets import RandomSets
from broca.neurons.verb_steps import scaling_steps
from broca.options import ItemSelectingOptions, NeuronRunOptions, takes_options
from broca.results.neurons import NeuronExperiment, Reliability
from broca.tasks import Task

UNRELATED = 20
"""Number of items of each task of another capability, which should not change."""


@takes_options
def reliability(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    factors: str | Sequence[float] = (0.0, 2.0),
    draws: int = 5,
    matching: str = "size",
    neuron_options: ItemSelectingOptions,
    run_options: NeuronRunOptions,
) -> NeuronExperiment[Reliability]:
    """Scales the neurons of every item and measures how p(answer) changes.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: A task, as in `broca.neurons.locate`.
        others: Tasks of other capabilities, which should not change; `auto` as in `locate`.
        factors: Factors of the located neurons' activations, as a list or joined by commas.
        draws: Number of random sets to compare with each located set.
        matching: Random sets match the `size`, or the number in every `layer`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    numbers, chance = factors_of(factors), RandomSets(draws, matching)
    with opened(
        model, run_options, neuron_options, factors=list(numbers),
        draws=draws, matching=matching,
        named=[task, others],
    ) as session:  # fmt: skip
        name, others = session.names(task, others)
        run = session.run("reliability", {"locate": (name, *others)})
        unrelated = np.concatenate(
            [EMPTY, *(run.places(other)[:UNRELATED] for other in run.run.tasks.others)]
        )
        run.stages.expect(scaling_steps(run, name, unrelated, factors=numbers, chance=chance))
        result = move(run, name, chance, unrelated=unrelated, factors=numbers)
        return experiment(run, result)
