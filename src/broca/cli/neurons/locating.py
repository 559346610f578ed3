"""Which neurons are selected on a data set, and whether they are the same ones elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from broca.cli.commands import PrintOptions
from broca.cli.neurons.session import command, experiment, finish, opened
from broca.errors import BadInput
from broca.options import (
    DataOptions,
    MethodOptions,
    ModelOptions,
    RuleOptions,
    SourceOptions,
    without,
)

ItemRule = Annotated[RuleOptions, without("aggregate", "share")]
NeuronModel = Annotated[ModelOptions, without("components")]
Folder = Annotated[SourceOptions, without("allow_code")]


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
    source_options: Folder,
    model_options: NeuronModel,
    print_options: PrintOptions,
) -> None:
    """Locate the neurons that a data set has in common; writes neurons.json."""
    from broca.neurons import located

    with opened(
        model,
        out=out,
        seed=seed,
        method=method,
        items=items,
        rule_options=rule_options,
        method_options=method_options,
        data_options=data_options,
        source_options=source_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        other_tasks = session.other_tasks(task, others) if method == "activation" else []
        choice = session.choose(task, others=other_tasks)
        notes = []
        if not len(choice.columns):
            notes.append("no neuron stands out: lower --sigma or give --count")
        result = located(
            session.neurons, session.parts(task).locate, choice,
            settings=session.settings.record(), notes=tuple(notes),
        )  # fmt: skip
    finish(result, "neurons.json", out=out, print_options=print_options)


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
    print_options: PrintOptions,
) -> None:
    """Do paraphrases of an item locate to the same neurons? Shipped: addition, capitals, mc_*.

    Args:
        task: A shipped task, or data:NAME whose rows have paraphrases: counterfact, or JSON lines
            with prompt, answer and paraphrases.
        contents: Most items, each in several wordings.
        wordings: Most wordings of an item.
    """
    from broca import neurons

    with opened(
        model,
        out=out,
        seed=seed,
        rule_options=rule_options,
        data_options=data_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        if task.startswith("data:"):
            texts, capability = neurons.load_texts(task, limit=contents)
        else:
            texts = neurons.paraphrased(task, contents=contents, wordings=wordings, seed=seed)
            capability = task
        questions = neurons.from_texts(
            task, texts, session.tokenizer, capability=capability,
            answer_tokens=data_options.answer_tokens,
        )  # fmt: skip
        result = neurons.fidelity(
            session.neurons, questions, rule=session.settings.rule, steps=rule_options.steps,
            seed=seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        record = experiment(session, "fidelity", result, task=task, wordings=wordings)
    finish(record, "fidelity.json", out=out, print_options=print_options)


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
    print_options: PrintOptions,
) -> None:
    """Do items share neurons because of their capability, or because of their content?

    Args:
        pairs: JSON lines with relation, first and second (prompt, answer).
        items: Shipped pairs of every relation.
    """
    from broca import neurons
    from broca.neurons.decoupling import read_pairs

    chosen = read_pairs(pairs) if pairs else neurons.shipped_pairs(count=items, seed=seed)
    with opened(
        model,
        out=out,
        seed=seed,
        rule_options=rule_options,
        model_options=model_options,
        print_options=print_options,
    ) as session:
        result = neurons.decouple(
            session.neurons, chosen, session.tokenizer, rule=session.settings.rule,
            steps=rule_options.steps, seed=seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        record = experiment(session, "decouple", result, pairs=pairs or "shipped")
    finish(record, "decouple.json", out=out, print_options=print_options)


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
    source_options: Folder,
    model_options: NeuronModel,
    print_options: PrintOptions,
) -> None:
    """Do two halves of a data set, and two data sets, have the same neurons? Draws a figure."""
    from broca import neurons
    from broca.results.files import write_beside

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
        sets = [session.parts(name).locate for name in session.other_tasks("", tasks)]
        if not sets:
            raise BadInput("there is no data set to compare: name some in `tasks`")
        result = neurons.overlaps(
            session.neurons, sets, rule=session.settings.rule, steps=rule_options.steps, seed=seed,
            book=session.book, tell=session.tell,
        )  # fmt: skip
        record = experiment(session, "overlap", result)
    page = neurons.overlap_page(result, title=f"Commonality neurons of {record.model.name}")
    write_beside(Path(out).expanduser() / "overlap.html", page)
    finish(record, "overlap.json", out=out, print_options=print_options)
