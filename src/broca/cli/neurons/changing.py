"""What located neurons do: they are scaled, erased or trained, and compared with random ones."""

from __future__ import annotations

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
    TrainingOptions,
)


@command
def reliability(
    model: str,
    /,
    *,
    task: str,
    others: str = "auto",
    factors: str = "0,2",
    draws: int = 5,
    matching: str = "size",
    items: int = 100,
    seed: int = 0,
    out: str = "broca-neurons",
    rule_options: ItemRule,
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: NeuronTasks,
    model_options: NeuronModel,
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
    print_options: PrintOptions,
) -> None:
    """Do an item's neurons move p(answer), down when suppressed and up when amplified?

    Args:
        factors: What located neurons are multiplied with.
    """
    run_verb("reliability", **locals())


@command
def erase(
    model: str,
    /,
    *,
    task: str,
    others: str = "auto",
    methods: str = "cnl",
    factor: float = 0.0,
    draws: int = 5,
    matching: str = "size",
    items: int = 100,
    report_items: int = 100,
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
    """Erase located neurons and as many random ones; held-out items of the task and of others.

    Args:
        methods: Methods to compare, joined by commas, at the first one's size.
        factor: What neurons are multiplied with.
    """
    run_verb("erase", **locals())


@command
def enhance(
    model: str,
    /,
    *,
    task: str,
    others: str = "",
    method: str = "cnl",
    without: str = "zeroed",
    draws: int = 3,
    matching: str = "size",
    items: int = 100,
    report_items: int = 300,
    seed: int = 0,
    out: str = "broca-neurons",
    training_options: TrainingOptions,
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
    """Train only located neurons, only others, or random ones; measure on held-out items.

    Args:
        without: Located neurons while all others train: zeroed or frozen.
    """
    run_verb("enhance", **locals())


@command
def cross(
    model: str,
    /,
    *,
    tasks: str = "auto",
    action: str = "erase",
    method: str = "cnl",
    draws: int = 3,
    matching: str = "size",
    items: int = 100,
    report_items: int = 100,
    seed: int = 0,
    out: str = "broca-neurons",
    training_options: TrainingOptions,
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
    """Locate on one data set, erase or train there, and measure on every other.

    Args:
        action: erase or tune the located neurons.
    """
    run_verb("cross", **locals())
