"""`neurons locate`: the neurons that a data set has in common."""

from __future__ import annotations

from collections.abc import Sequence

from broca.models import GatedModel
from broca.neurons.describing import neuron_set
from broca.neurons.methods import choice_steps, choose_neurons, require_neuron_method
from broca.neurons.opening import opened
from broca.options import LocatingOptions, NeuronRunOptions, takes_options
from broca.results.neurons import NeuronSet
from broca.tasks import Task


@takes_options
def locate(
    model: str | GatedModel,
    task: str | Task,
    *,
    method: str = "cnl",
    others: str | Sequence[str | Task] = "auto",
    neuron_options: LocatingOptions,
    run_options: NeuronRunOptions,
) -> NeuronSet:
    """Locates the neurons that a data set has in common.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: A task as in `broca.localize`, or `data:` and a data set, hub id, folder or file.
        method: `cnl` (commonality neurons), or another of `broca.neurons.methods.NEURON_METHODS`.
        others: Tasks that a method such as `activation` compares with; `auto` as in
            `broca.localize`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    options = neuron_options.method_options
    compares = require_neuron_method(method, options).compares
    with opened(
        model, run_options, neuron_options,
        method=method,
        named=[task, others],
    ) as session:  # fmt: skip
        name, contrast = session.names(task, others if compares else ())
        run = session.run("locate", {"locate": (name, *contrast)})
        run.stages.expect(
            choice_steps(run, name, method=method, options=options, contrast=contrast)
        )
        choice = choose_neurons(run, name, method=method, options=options, contrast=contrast)
        return neuron_set(run, name, choice)
