"""`neurons decouple`: are neurons shared because of the capability, or of the content?"""

from __future__ import annotations

from pathlib import Path

from broca.models import GatedModel
from broca.neurons.decoupling import NAME, decoupled, read_pairs, task_of
from broca.neurons.describing import experiment
from broca.neurons.items import example_tasks
from broca.neurons.opening import opened
from broca.neurons.paraphrases import shipped_pairs
from broca.neurons.verb_steps import scoring_step
from broca.options import ExampleRunOptions, ItemRuleOptions, takes_options
from broca.results.neurons import Decoupled, NeuronExperiment


@takes_options
def decouple(
    model: str | GatedModel,
    *,
    pairs: str | Path | None = None,
    items: int = 60,
    seed: int = 0,
    rule_options: ItemRuleOptions,
    run_options: ExampleRunOptions,
) -> NeuronExperiment[tuple[Decoupled, ...]]:
    """Compares the neurons of items that share a capability, a content, or neither.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        pairs: JSON lines with `relation`, `first` and `second`, each of these with `prompt` and
            `answer`; by default pairs are made of shipped items.
        items: Shipped pairs of every relation.
        seed: Seed of the shipped pairs and the intervals.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    chosen = read_pairs(pairs) if pairs else shipped_pairs(count=items, seed=seed)
    with opened(
        model, run_options, rule_options, pairs=str(pairs or "shipped"), items=items,
        seed=seed,
    ) as session:  # fmt: skip
        run = session.run("decouple", example_tasks(session.neurons.model, task_of(chosen)))
        run.stages.expect([scoring_step(NAME, run.places(NAME))])
        return experiment(run, decoupled(run, chosen))
