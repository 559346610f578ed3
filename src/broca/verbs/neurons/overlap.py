"""`neurons overlap`: do two halves of a data set, or two data sets, share neurons?"""

from __future__ import annotations

from collections.abc import Sequence

from broca.errors import BadInput
from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.opening import opened
from broca.neurons.overlapping import overlapped
from broca.neurons.verb_steps import scoring_step
from broca.options import NeuronRunOptions, SelectingOptions, takes_options
from broca.results.neurons import NeuronExperiment, Overlaps
from broca.tasks import Task


@takes_options
def overlap(
    model: str | GatedModel,
    tasks: str | Sequence[str | Task] = "auto",
    *,
    neuron_options: SelectingOptions,
    run_options: NeuronRunOptions,
) -> NeuronExperiment[Overlaps]:
    """Compares the neurons of two halves of every task, and of halves of different tasks.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        tasks: The tasks to compare, as a list or joined by commas; `auto`: all shipped ones.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    with opened(
        model, run_options, neuron_options,
        named=[tasks],
    ) as session:  # fmt: skip
        _, names = session.names("", tasks)
        if not names:
            raise BadInput("there is no data set to compare: name some in `tasks`")
        run = session.run("overlap", {"locate": names})
        run.stages.expect([scoring_step(name, run.places(name)) for name in names])
        return experiment(run, overlapped(run, names))
