"""`neurons fidelity`: do paraphrases of an item have the same located neurons?"""

from __future__ import annotations

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.items import example_tasks
from broca.neurons.opening import opened
from broca.neurons.paraphrases import examples_by_wording
from broca.neurons.rewording import reworded
from broca.neurons.verb_steps import scoring_step
from broca.options import ExampleRunOptions, WordingSelectingOptions, takes_options
from broca.results.neurons import Fidelity, NeuronExperiment
from broca.tasks import Task


@takes_options
def fidelity(
    model: str | GatedModel,
    task: str | Task,
    *,
    contents: int = 50,
    wordings: int = 4,
    neuron_options: WordingSelectingOptions,
    run_options: ExampleRunOptions,
) -> NeuronExperiment[Fidelity]:
    """Compares the neurons of paraphrases with those of different items.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: `addition`, `capitals`, `mc_biology` or `mc_chemistry`, whose paraphrases are shipped;
            or `data:NAME`, a JSON-lines file or a `broca.Task`, whose examples have `paraphrases`.
        contents: Maximum number of items, each in several paraphrases.
        wordings: Maximum number of paraphrases of an item of a shipped task.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    data = neuron_options.data_options
    examples = examples_by_wording(task, contents=contents, wordings=wordings, seed=data.seed)
    with opened(
        model, run_options, neuron_options, task=examples.name, contents=contents,
        wordings=wordings,
    ) as session:  # fmt: skip
        model = session.neurons.model
        tasks = example_tasks(model, examples, answer_tokens=data.answer_tokens)
        run = session.run("fidelity", tasks)
        run.stages.expect([scoring_step(examples.name, run.places(examples.name))])
        return experiment(run, reworded(run, examples.name))
