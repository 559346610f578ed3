"""Which neurons are selected on a data set, and whether they are the same ones elsewhere."""

from __future__ import annotations

from typing import Annotated

from broca.cli.commands import PrintOptions
from broca.cli.neurons.session import ItemRule, NeuronModel, NeuronTasks, command, run_verb
from broca.options import (
    DataOptions,
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    MethodOptions,
    RuleOptions,
    SourceOptions,
    without,
)


@command
def locate(
    model: str,
    /,
    *,
    task: str,
    others: str = "auto",
    method: str = "cnl",
    items: int = 100,
    seed: int = 0,
    out: str = "broca-neurons",
    rule_options: RuleOptions,
    method_options: MethodOptions,
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: NeuronTasks,
    model_options: NeuronModel,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
    print_options: PrintOptions,
) -> None:
    """Locate the neurons that a data set has in common; writes neurons.json."""
    run_verb("locate", **locals())


@command
def fidelity(
    model: str,
    /,
    *,
    task: str,
    contents: int = 50,
    wordings: int = 4,
    seed: int = 0,
    out: str = "broca-neurons",
    rule_options: ItemRule,
    data_options: Annotated[DataOptions, without("fields")],
    model_options: NeuronModel,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
    print_options: PrintOptions,
) -> None:
    """Do paraphrases of an item locate to the same neurons? Shipped: addition, capitals, mc_*.

    Args:
        task: A shipped task, or data:NAME whose rows have paraphrases: counterfact, or JSON lines
            with prompt, answer and paraphrases.
        contents: Most items, each in several wordings.
        wordings: Most wordings of an item.
    """
    run_verb("fidelity", **locals())


@command
def decouple(
    model: str,
    /,
    *,
    pairs: str | None = None,
    items: int = 60,
    seed: int = 0,
    out: str = "broca-neurons",
    rule_options: ItemRule,
    model_options: NeuronModel,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
    print_options: PrintOptions,
) -> None:
    """Do items share neurons because of their capability, or because of their content?

    Args:
        pairs: JSON lines with relation, first and second (prompt, answer).
        items: Shipped pairs of every relation.
    """
    run_verb("decouple", **locals())


@command
def overlap(
    model: str,
    /,
    *,
    tasks: str = "auto",
    items: int = 100,
    seed: int = 0,
    out: str = "broca-neurons",
    rule_options: RuleOptions,
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: NeuronTasks,
    model_options: NeuronModel,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
    print_options: PrintOptions,
) -> None:
    """Do two halves of a data set, and two data sets, have the same neurons? Draws a figure."""
    run_verb("overlap", **locals())
