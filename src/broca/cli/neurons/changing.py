"""What located neurons do: they are scaled, erased or trained, and random ones beside them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from broca.cli.model_options import Model
from broca.cli.neurons.options import (
    DataOptions,
    Draws,
    ItemRuleOptions,
    Items,
    Matching,
    MethodName,
    MethodOptions,
    Others,
    ReportItems,
    RuleOptions,
    RunOptions,
    Task,
    Tasks,
    TrainingOptions,
    matched,
)
from broca.cli.neurons.session import experiment, finish, opened
from broca.cli.option_groups import takes_groups
from broca.errors import BadInput

if TYPE_CHECKING:
    from broca.neurons import Choice


@takes_groups
def reliability(
    model: Model,
    task: Task,
    others: Others = "auto",
    factors: Annotated[str, typer.Option(help="What located neurons are multiplied with.")] = "0,2",
    draws: Draws = 5,
    matching: Matching = "size",
    *,
    rule: ItemRuleOptions,
    items: Items = 100,
    data: DataOptions,
    run: RunOptions,
) -> None:
    """Do an item's neurons move p(answer), down when suppressed and up when amplified?"""
    from broca import neurons

    try:
        numbers = [float(part) for part in factors.split(",")]
    except ValueError:
        raise BadInput(f"--factors '{factors}' are no numbers joined by commas") from None
    with opened(model, run, rule, data, items=items) as session:
        questions = session.parts(task).locate
        unrelated = [
            question
            for name in session.other_tasks(task, others)
            if session.parts(name).locate.capability != questions.capability
            for question in session.parts(name).locate.questions[:20]
        ]
        result = neurons.reliability(
            session.neurons, questions, measurer=session.measurer, rule=session.settings.rule,
            unrelated=unrelated, factors=numbers, draws=draws, matching=matched(matching),
            steps=rule.steps, seed=run.seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        done = experiment(session, "reliability", result, task=task, factors=numbers)
    finish(run, done, "reliability.json")


@takes_groups
def erase(
    model: Model,
    task: Task,
    others: Others = "auto",
    methods: Annotated[
        str,
        typer.Option(help="Methods to compare, joined by commas, at the first one's size."),
    ] = "cnl",
    factor: Annotated[float, typer.Option(help="What neurons are multiplied with.")] = 0.0,
    draws: Draws = 5,
    matching: Matching = "size",
    *,
    rule: RuleOptions,
    method_options: MethodOptions,
    items: Items = 100,
    report_items: ReportItems = 100,
    data: DataOptions,
    run: RunOptions,
) -> None:
    """Erase located neurons and as many random ones; held-out items of the task and of others."""
    from broca import neurons

    names = [name.strip() for name in methods.split(",") if name.strip()]
    for name in names or [methods]:
        neurons.require_method(name)
    with opened(
        model, run, rule, data, method_options, method=names[0], items=items,
        report_items=report_items,
    ) as session:  # fmt: skip
        other = session.other_tasks(task, others)
        first = _require(session.choose(task, others=other), task)
        equal = replace(session.settings.rule, count=len(first.columns))
        sets, notes = {names[0]: first.columns}, []
        for name in names[1:]:
            choice = session.choose(task, method=name, rule=equal, others=other)
            if len(choice.columns):
                sets[name] = choice.columns
            else:
                notes.append(f"{name} found no neuron")
        result = neurons.erase(
            session.neurons, sets, [session.parts(name).report for name in (task, *other)],
            measurer=session.measurer, factor=factor, draws=draws, matching=matched(matching),
            seed=run.seed,
        )  # fmt: skip
        found = {name: session.neurons.names(columns) for name, columns in sets.items()}
        done = experiment(
            session, "erase", result, notes, task=task, methods=names, factor=factor,
            matching=matching, neurons=found,
        )  # fmt: skip
    finish(run, done, "erase.json")


@takes_groups
def enhance(
    model: Model,
    task: Task,
    others: Others = "",
    method: MethodName = "cnl",
    *,
    training: TrainingOptions,
    without: Annotated[
        str, typer.Option(help="Located neurons while all others train: zeroed or frozen.")
    ] = "zeroed",
    draws: Draws = 3,
    matching: Matching = "size",
    rule: RuleOptions,
    items: Items = 100,
    report_items: ReportItems = 300,
    data: DataOptions,
    run: RunOptions,
) -> None:
    """Train only located neurons, only others, or random ones; measure on held-out items."""
    from broca import neurons

    options = training.tuning()
    with opened(
        model, run, rule, data, method=method, items=items, report_items=report_items
    ) as session:
        other = session.other_tasks(task, others)
        parts = session.parts(task)
        choice = _require(session.choose(task, others=other), task)
        result = neurons.enhance(
            session.neurons, choice.columns, parts.locate, parts.confirm,
            [parts.report, *(session.parts(name).report for name in other)],
            measurer=session.measurer, options=options, draws=draws,
            without=without, matching=matched(matching), seed=run.seed,  # type: ignore[arg-type]
            tell=session.tell,
        )  # fmt: skip
        done = experiment(
            session, "enhance", result, task=task, **asdict(training), without=without,
            matching=matching,
        )  # fmt: skip
    finish(run, done, "enhance.json")


@takes_groups
def cross(
    model: Model,
    tasks: Tasks = "auto",
    action: Annotated[str, typer.Option(help="erase or tune the located neurons.")] = "erase",
    method: MethodName = "cnl",
    *,
    training: TrainingOptions,
    draws: Draws = 3,
    matching: Matching = "size",
    rule: RuleOptions,
    items: Items = 100,
    report_items: ReportItems = 100,
    data: DataOptions,
    run: RunOptions,
) -> None:
    """Locate on one data set, erase or train there, and measure on every other."""
    from broca import neurons

    options = training.tuning()
    with opened(
        model, run, rule, data, method=method, items=items, report_items=report_items
    ) as session:
        names = session.other_tasks("", tasks)
        if len(names) < 2:
            raise BadInput("there is nothing to cross: name two data sets or more in --tasks")
        sets = [
            session.choose(name, others=[one for one in names if one != name]).columns
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
            draws=draws, matching=matched(matching), seed=run.seed, tell=session.tell,
        )  # fmt: skip
        done = experiment(
            session, "cross", result, notes, action=action, lr=training.lr,
            epochs=training.epochs, matching=matching,
        )  # fmt: skip
    finish(run, done, "cross.json")


def _require(choice: Choice, name: str) -> Choice:
    if not len(choice.columns):
        raise BadInput(
            f"no neuron stands out on '{name}' by {choice.method}: lower --sigma or give --count"
        )
    return choice
