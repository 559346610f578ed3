"""What located neurons do: they are scaled, erased or trained, and compared with random ones."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from broca.cli.commands import PrintOptions
from broca.cli.neurons.locating import Folder, ItemRule, NeuronModel
from broca.cli.neurons.session import command, experiment, finish, opened
from broca.cli.wording import listed
from broca.errors import BadInput
from broca.options import DataOptions, MethodOptions, RuleOptions, TrainingOptions

if TYPE_CHECKING:
    from broca.neurons import Choice


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
    source_options: Folder,
    model_options: NeuronModel,
    print_options: PrintOptions,
) -> None:
    """Do an item's neurons move p(answer), down when suppressed and up when amplified?

    Args:
        factors: What located neurons are multiplied with.
    """
    from broca import neurons

    try:
        numbers = [float(part) for part in factors.split(",")]
    except ValueError:
        raise BadInput(f"`factors` '{factors}' are no numbers joined by commas") from None
    with opened(
        model,
        out=out,
        seed=seed,
        items=items,
        rule_options=rule_options,
        data_options=data_options,
        source_options=source_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        questions = session.parts(task).locate
        unrelated = [
            question
            for name in session.other_tasks(task, others)
            if session.parts(name).locate.capability != questions.capability
            for question in session.parts(name).locate.questions[:20]
        ]
        result = neurons.reliability(
            session.neurons, questions, measurer=session.measurer, rule=session.settings.rule,
            unrelated=unrelated, factors=numbers, draws=draws, matching=_matched(matching),
            steps=rule_options.steps, seed=seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        record = experiment(session, "reliability", result, task=task, factors=numbers)
    finish(record, "reliability.json", out=out, print_options=print_options)


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
    source_options: Folder,
    model_options: NeuronModel,
    print_options: PrintOptions,
) -> None:
    """Erase located neurons and as many random ones; held-out items of the task and of others.

    Args:
        methods: Methods to compare, joined by commas, at the first one's size.
        factor: What neurons are multiplied with.
    """
    from broca import neurons

    names = listed(methods)
    for name in names or [methods]:
        neurons.require_method(name)
    with opened(
        model,
        out=out,
        seed=seed,
        method=names[0],
        items=items,
        report_items=report_items,
        rule_options=rule_options,
        method_options=method_options,
        data_options=data_options,
        source_options=source_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        other_tasks = session.other_tasks(task, others)
        first = _require(session.choose(task, others=other_tasks), task)
        equal = replace(session.settings.rule, count=len(first.columns))
        sets, notes = {names[0]: first.columns}, []
        for name in names[1:]:
            choice = session.choose(task, method=name, rule=equal, others=other_tasks)
            if len(choice.columns):
                sets[name] = choice.columns
            else:
                notes.append(f"{name} found no neuron")
        result = neurons.erase(
            session.neurons, sets, [session.parts(name).report for name in (task, *other_tasks)],
            measurer=session.measurer, factor=factor, draws=draws, matching=_matched(matching),
            seed=seed,
        )  # fmt: skip
        located = {name: session.neurons.names(columns) for name, columns in sets.items()}
        record = experiment(
            session, "erase", result, notes, task=task, methods=names, factor=factor,
            matching=matching, neurons=located,
        )  # fmt: skip
    finish(record, "erase.json", out=out, print_options=print_options)


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
    source_options: Folder,
    model_options: NeuronModel,
    print_options: PrintOptions,
) -> None:
    """Train only located neurons, only others, or random ones; measure on held-out items.

    Args:
        without: Located neurons while all others train: zeroed or frozen.
    """
    from broca import neurons

    options = neurons.TuningOptions(**asdict(training_options))
    with opened(
        model,
        out=out,
        seed=seed,
        method=method,
        items=items,
        report_items=report_items,
        rule_options=rule_options,
        data_options=data_options,
        source_options=source_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        other_tasks = session.other_tasks(task, others)
        parts = session.parts(task)
        choice = _require(session.choose(task, others=other_tasks), task)
        result = neurons.enhance(
            session.neurons, choice.columns, parts.locate, parts.confirm,
            [parts.report, *(session.parts(name).report for name in other_tasks)],
            measurer=session.measurer, options=options, draws=draws,
            without=without, matching=_matched(matching), seed=seed,  # type: ignore[arg-type]
            tell=session.tell,
        )  # fmt: skip
        record = experiment(
            session, "enhance", result, task=task, **asdict(training_options), without=without,
            matching=matching,
        )  # fmt: skip
    finish(record, "enhance.json", out=out, print_options=print_options)


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
    source_options: Folder,
    model_options: NeuronModel,
    print_options: PrintOptions,
) -> None:
    """Locate on one data set, erase or train there, and measure on every other.

    Args:
        action: erase or tune the located neurons.
    """
    from broca import neurons

    options = neurons.TuningOptions(**asdict(training_options))
    with opened(
        model,
        out=out,
        seed=seed,
        method=method,
        items=items,
        report_items=report_items,
        rule_options=rule_options,
        data_options=data_options,
        source_options=source_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        names = session.other_tasks("", tasks)
        if len(names) < 2:
            raise BadInput("there is nothing to cross: name two data sets or more in `tasks`")
        sets = [
            session.choose(name, others=[other for other in names if other != name]).columns
            for name in names
        ]
        notes = [
            f"no neuron stands out on {name}: left out"
            for name, columns in zip(names, sets, strict=True)
            if not len(columns)
        ]
        result = neurons.cross(
            session.neurons, sets, [session.parts(name) for name in names],
            action=action, measurer=session.measurer, options=options,  # type: ignore[arg-type]
            draws=draws, matching=_matched(matching), seed=seed, tell=session.tell,
        )  # fmt: skip
        record = experiment(
            session, "cross", result, notes, action=action, lr=training_options.lr,
            epochs=training_options.epochs, matching=matching,
        )  # fmt: skip
    finish(record, "cross.json", out=out, print_options=print_options)


def _require(choice: Choice, name: str) -> Choice:
    if not len(choice.columns):
        raise BadInput(
            f"no neuron stands out on '{name}' by {choice.method}: lower `sigma` or give `count`"
        )
    return choice


def _matched(text: str) -> Any:
    """What random sets match.

    Raises:
        BadInput: It is neither size nor layer.
    """
    if text not in ("size", "layer"):
        raise BadInput(f"`matching` '{text}' is unknown: use size or layer")
    return text
