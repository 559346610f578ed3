"""Which neurons stand out: on a data set, and whether they are the same ones elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from broca.cli.model_options import Model
from broca.cli.neurons.options import (
    AnswerTokens,
    DataOptions,
    ItemRuleOptions,
    Items,
    MethodName,
    MethodOptions,
    Others,
    RuleOptions,
    RunOptions,
    Task,
    Tasks,
)
from broca.cli.neurons.session import experiment, finish, opened
from broca.cli.option_groups import takes_groups
from broca.errors import BadInput


@takes_groups
def locate(
    model: Model,
    task: Task,
    others: Others = "auto",
    method: MethodName = "cnl",
    *,
    rule: RuleOptions,
    methods: MethodOptions,
    items: Items = 100,
    data: DataOptions,
    run: RunOptions,
) -> None:
    """Locate the neurons that a data set has in common; writes neurons.json."""
    from broca.neurons import located

    with opened(model, run, rule, data, methods, method=method, items=items) as session:
        named = session.other_tasks(task, others) if method == "activation" else []
        choice = session.choose(task, others=named)
        notes = []
        if not len(choice.columns):
            notes.append("no neuron stands out: lower --sigma or give --count")
        result = located(
            session.neurons, session.parts(task).locate, choice,
            settings=session.settings.record(), notes=tuple(notes),
        )  # fmt: skip
    finish(run, result, "neurons.json")


@takes_groups
def fidelity(
    model: Model,
    task: Task,
    contents: Annotated[int, typer.Option(help="Most items, each in several wordings.")] = 50,
    wordings: Annotated[int, typer.Option(help="Most wordings of an item.")] = 4,
    *,
    rule: ItemRuleOptions,
    answer_tokens: AnswerTokens = None,
    run: RunOptions,
) -> None:
    """Do paraphrases of an item locate to the same neurons? Shipped: addition, capitals, mc_*.

    Or data:NAME whose rows have paraphrases: counterfact, or JSON lines with prompt, answer and
    paraphrases.
    """
    from broca import neurons

    with opened(model, run, rule, answer_tokens=answer_tokens) as session:
        if task.startswith("data:"):
            texts, capability = neurons.load_texts(task, limit=contents)
        else:
            texts = neurons.paraphrased(task, contents=contents, wordings=wordings, seed=run.seed)
            capability = task
        questions = neurons.from_texts(
            task, texts, session.tokenizer, capability=capability, answer_tokens=answer_tokens
        )
        result = neurons.fidelity(
            session.neurons, questions, rule=session.settings.rule, steps=rule.steps,
            seed=run.seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        done = experiment(session, "fidelity", result, task=task, wordings=wordings)
    finish(run, done, "fidelity.json")


@takes_groups
def decouple(
    model: Model,
    pairs: Annotated[
        str | None,
        typer.Option(help="JSON lines with relation, first and second (prompt, answer)."),
    ] = None,
    items: Annotated[int, typer.Option(help="Shipped pairs of every relation.")] = 60,
    *,
    rule: ItemRuleOptions,
    run: RunOptions,
) -> None:
    """Do items share neurons because of their capability, or because of their content?"""
    from broca import neurons
    from broca.neurons.decoupling import read_pairs

    chosen = read_pairs(pairs) if pairs else neurons.shipped_pairs(count=items, seed=run.seed)
    with opened(model, run, rule) as session:
        result = neurons.decouple(
            session.neurons, chosen, session.tokenizer, rule=session.settings.rule,
            steps=rule.steps, seed=run.seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        done = experiment(session, "decouple", result, pairs=pairs or "shipped")
    finish(run, done, "decouple.json")


@takes_groups
def overlap(
    model: Model,
    tasks: Tasks = "auto",
    *,
    rule: RuleOptions,
    items: Items = 100,
    data: DataOptions,
    run: RunOptions,
) -> None:
    """Do two halves of a data set, and two data sets, have the same neurons? Draws a figure."""
    from broca import neurons
    from broca.results.files import write_beside

    with opened(model, run, rule, data, items=items) as session:
        sets = [session.parts(name).locate for name in session.other_tasks("", tasks)]
        if not sets:
            raise BadInput("there is no data set to compare: name some in --tasks")
        result = neurons.overlaps(
            session.neurons, sets, rule=session.settings.rule, steps=rule.steps, seed=run.seed,
            book=session.book, tell=session.tell,
        )  # fmt: skip
        done = experiment(session, "overlap", result)
    page = neurons.overlap_page(result, title=f"Commonality neurons of {done.model.name}")
    write_beside(Path(run.out).expanduser() / "overlap.html", page)
    finish(run, done, "overlap.json")
