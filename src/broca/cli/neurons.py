"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broca.cli import neuron_tables as tables
from broca.cli.model_options import AllowPickle
from broca.cli.progress import ProgressLine
from broca.errors import BadInput

if TYPE_CHECKING:
    from broca.neurons import Choice, Experiment, Located, Rule, Session

app = typer.Typer(
    name="neurons",
    help="Find the feed-forward neurons that carry what a data set has in common, and test them.",
    no_args_is_help=True,
    add_completion=False,
)

_TASK = "A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines file)."
Model = Annotated[str, typer.Argument(help="reference, planted, a model folder or a hub id.")]
Task = Annotated[str, typer.Option(help=_TASK)]
Tasks = Annotated[str, typer.Option(help="Data sets, T1,T2,..., or auto: all shipped tasks.")]
Others = Annotated[
    str, typer.Option(help="Data sets to measure on besides: T1,T2, auto, or nothing.")
]
Steps = Annotated[int, typer.Option(help="Steps S of the integrated gradients.")]
Sigma = Annotated[float, typer.Option(help="Standard deviations above the mean to exceed.")]
Scope = Annotated[str, typer.Option(help="Mean and deviation over all neurons: global, or layer.")]
Aggregate = Annotated[str, typer.Option(help="mean of the items' scores, or vote of their sets.")]
Share = Annotated[float, typer.Option(help="With vote: least share of items for a neuron.")]
Count = Annotated[
    int | None, typer.Option(help="Take the so many best neurons instead of those beyond sigma.")
]
MethodName = Annotated[
    str,
    typer.Option(help="cnl, knowledge-neurons, activation, gradient, random or sensing."),
]
Threshold = Annotated[
    float, typer.Option(help="Knowledge neurons: share of an item's highest score to exceed.")
]
KnowledgeShare = Annotated[
    float, typer.Option(help="Knowledge neurons: share of items that must hold a neuron.")
]
Rows = Annotated[
    int | None,
    typer.Option(help="Rows of sensing; default: what costs as much as integrated gradients."),
]
Search = Annotated[
    str, typer.Option(help="How sensing searches: masked-gradient, or a search as for heads.")
]
Items = Annotated[int, typer.Option(help="Most items to locate on.")]
ReportItems = Annotated[int, typer.Option(help="Most items to measure on.")]
Draws = Annotated[int, typer.Option(help="Random sets to compare each located set with.")]
Matching = Annotated[
    str, typer.Option(help="Random sets match the size, or the number in every layer.")
]
AnswerTokens = Annotated[
    int | None, typer.Option(help="Of data: sets, only the first so many answer tokens count.")
]
Fields = Annotated[
    str, typer.Option(help="Of data: sets, the columns: prompt=COLUMN,answer=COLUMN.")
]
IncludePath = Annotated[str | None, typer.Option(help="A folder of lm-eval YAML tasks to add.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Out = Annotated[str, typer.Option(help="Folder for results; item scores there are reused.")]
DType = Annotated[str, typer.Option(help="float32, bfloat16, float16, or auto (float32 on a CPU).")]
Device = Annotated[str | None, typer.Option(help="Device, such as cpu or cuda:0.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Plain = Annotated[bool, typer.Option("--plain", help="Progress as plain lines.")]
Lr = Annotated[float, typer.Option(help="Learning rate of Adam.")]
Epochs = Annotated[int, typer.Option(help="Most passes over the training items.")]
BatchSize = Annotated[int, typer.Option(help="Items of a training step.")]
Patience = Annotated[
    int, typer.Option(help="Epochs without lower validation loss before stopping.")
]


@dataclass(frozen=True)
class _Common:
    """Where a command runs and writes."""

    model: str
    out: str
    dtype: str
    device: str | None
    allow_pickle: bool
    include_path: str | None
    plain: bool


def _rule(sigma: float, scope: str, aggregate: str, share: float, count: int | None) -> Rule:
    from broca.neurons import Rule

    return Rule(sigma, scope, aggregate, share, count)  # type: ignore[arg-type]  # it checks


def _fields(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not equals or not value.strip() for _, equals, value in pairs):
        raise BadInput(f"--fields '{text}' is not of the form prompt=COLUMN,answer=COLUMN")
    return {name.strip(): value.strip() for name, _, value in pairs}


@contextmanager
def _session(common: _Common, **settings: Any) -> Iterator[Session]:
    """Opens the out folder and the model; shows progress meanwhile."""
    from broca.files import check_out_folder
    from broca.models import load
    from broca.neurons import Session, Settings, require_method

    if "method" in settings:
        require_method(settings["method"])
    prepared = Settings(**settings)
    folder = check_out_folder(common.out)
    progress = ProgressLine(plain=common.plain)
    try:
        progress("loading the model", None)
        model = load(
            common.model,
            dtype=common.dtype,
            device=common.device,
            allow_pickle=common.allow_pickle,
            components="neurons",
        )
        yield Session(model, prepared, out=folder, include_path=common.include_path, tell=progress)
    finally:
        progress.close()


def _finish(common: _Common, result: Located | Experiment, name: str, *, json: bool) -> None:
    """Writes the result, and prints it as JSON or as a table."""
    from broca.neurons import to_json, write

    text = to_json(result)
    path = write(text, Path(common.out).expanduser() / name)
    if json:
        sys.stdout.write(text)
    else:
        tables.show(result, path)


def _experiment(
    session: Session, command: str, result: Any, notes: Sequence[str] = (), **settings: Any
) -> Experiment:
    from broca.neurons import Experiment

    record = {**session.settings.record(), **settings}
    return Experiment(f"broca neurons {command}", session.facts, record, result, tuple(notes))


def _require(choice: Choice, name: str) -> Choice:
    if not len(choice.columns):
        raise BadInput(
            f"no neuron stands out on '{name}' by {choice.method}: lower --sigma or give --count"
        )
    return choice


@app.command()
def locate(
    model: Model,
    task: Task,
    others: Others = "auto",
    method: MethodName = "cnl",
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    aggregate: Aggregate = "mean",
    share: Share = 0.5,
    count: Count = None,
    threshold: Threshold = 0.2,
    knowledge_share: KnowledgeShare = 0.4,
    search: Search = "masked-gradient",
    rows: Rows = None,
    items: Items = 100,
    answer_tokens: AnswerTokens = None,
    fields: Fields = "",
    include_path: IncludePath = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Locate the neurons that a data set has in common; writes neurons.json."""
    from broca.neurons import SensingOptions, located

    common = _Common(model, out, dtype, device, allow_pickle, include_path, plain)
    with _session(
        common, rule=_rule(sigma, scope, aggregate, share, count), method=method, steps=steps,
        threshold=threshold, knowledge_share=knowledge_share, items=items, seed=seed,
        answer_tokens=answer_tokens, fields=_fields(fields), sensing=SensingOptions(search, rows),
    ) as session:  # fmt: skip
        named = session.other_tasks(task, others) if method == "activation" else []
        choice = session.choose(task, others=named)
        notes = []
        if not len(choice.columns):
            notes.append("no neuron stands out: lower --sigma or give --count")
        result = located(
            session.neurons, session.parts(task).locate, choice,
            settings=session.settings.record(), notes=tuple(notes),
        )  # fmt: skip
    _finish(common, result, "neurons.json", json=json)


@app.command()
def fidelity(
    model: Model,
    task: Task,
    contents: Annotated[int, typer.Option(help="Most items, each in several wordings.")] = 50,
    wordings: Annotated[int, typer.Option(help="Most wordings of an item.")] = 4,
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    count: Count = None,
    answer_tokens: AnswerTokens = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Do paraphrases of an item locate to the same neurons? Shipped: addition, capitals, mc_*.

    Or data:NAME whose rows have paraphrases: counterfact, or JSON lines with prompt, answer and
    paraphrases.
    """
    from broca.neurons import fidelity as run
    from broca.neurons import from_texts, load_texts, paraphrased

    common = _Common(model, out, dtype, device, allow_pickle, None, plain)
    with _session(
        common, rule=_rule(sigma, scope, "mean", 0.5, count), steps=steps, seed=seed,
        answer_tokens=answer_tokens,
    ) as session:  # fmt: skip
        if task.startswith("data:"):
            texts, capability = load_texts(task, limit=contents)
        else:
            texts = paraphrased(task, contents=contents, wordings=wordings, seed=seed)
            capability = task
        questions = from_texts(
            task, texts, session.tokenizer, capability=capability, answer_tokens=answer_tokens
        )
        result = run(
            session.neurons, questions, rule=session.settings.rule, steps=steps, seed=seed,
            book=session.book, tell=session.tell,
        )  # fmt: skip
        done = _experiment(session, "fidelity", result, task=task, wordings=wordings)
    _finish(common, done, "fidelity.json", json=json)


@app.command()
def reliability(
    model: Model,
    task: Task,
    others: Others = "auto",
    factors: Annotated[str, typer.Option(help="What located neurons are multiplied with.")] = "0,2",
    draws: Draws = 5,
    matching: Matching = "size",
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    count: Count = None,
    items: Items = 100,
    answer_tokens: AnswerTokens = None,
    fields: Fields = "",
    include_path: IncludePath = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Do an item's neurons move p(answer), down when suppressed and up when amplified?"""
    from broca.neurons import reliability as run

    try:
        numbers = [float(part) for part in factors.split(",")]
    except ValueError:
        raise BadInput(f"--factors '{factors}' are no numbers joined by commas") from None
    common = _Common(model, out, dtype, device, allow_pickle, include_path, plain)
    with _session(
        common, rule=_rule(sigma, scope, "mean", 0.5, count), steps=steps, items=items, seed=seed,
        answer_tokens=answer_tokens, fields=_fields(fields),
    ) as session:  # fmt: skip
        questions = session.parts(task).locate
        unrelated = [
            question
            for name in session.other_tasks(task, others)
            if session.parts(name).locate.capability != questions.capability
            for question in session.parts(name).locate.questions[:20]
        ]
        result = run(
            session.neurons, questions, measurer=session.measurer, rule=session.settings.rule,
            unrelated=unrelated, factors=numbers, draws=draws, matching=_matching(matching),
            steps=steps, seed=seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        done = _experiment(session, "reliability", result, task=task, factors=numbers)
    _finish(common, done, "reliability.json", json=json)


@app.command()
def decouple(
    model: Model,
    pairs: Annotated[
        str | None,
        typer.Option(help="JSON lines with relation, first and second (prompt, answer)."),
    ] = None,
    items: Annotated[int, typer.Option(help="Shipped pairs of every relation.")] = 60,
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    count: Count = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Do items share neurons because of their capability, or because of their content?"""
    from broca.neurons import decouple as run
    from broca.neurons import shipped_pairs
    from broca.neurons.decoupling import read_pairs

    common = _Common(model, out, dtype, device, allow_pickle, None, plain)
    chosen = read_pairs(pairs) if pairs else shipped_pairs(count=items, seed=seed)
    with _session(
        common, rule=_rule(sigma, scope, "mean", 0.5, count), steps=steps, seed=seed
    ) as session:
        result = run(
            session.neurons, chosen, session.tokenizer, rule=session.settings.rule, steps=steps,
            seed=seed, book=session.book, tell=session.tell,
        )  # fmt: skip
        done = _experiment(session, "decouple", result, pairs=pairs or "shipped")
    _finish(common, done, "decouple.json", json=json)


@app.command()
def overlap(
    model: Model,
    tasks: Tasks = "auto",
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    aggregate: Aggregate = "mean",
    share: Share = 0.5,
    count: Count = None,
    items: Items = 100,
    answer_tokens: AnswerTokens = None,
    fields: Fields = "",
    include_path: IncludePath = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Do two halves of a data set, and two data sets, have the same neurons? Draws a figure."""
    from broca.neurons import overlap_page, overlaps, write

    common = _Common(model, out, dtype, device, allow_pickle, include_path, plain)
    with _session(
        common, rule=_rule(sigma, scope, aggregate, share, count), steps=steps, items=items,
        seed=seed, answer_tokens=answer_tokens, fields=_fields(fields),
    ) as session:  # fmt: skip
        data = [session.parts(name).locate for name in session.other_tasks("", tasks)]
        if not data:
            raise BadInput("there is no data set to compare: name some in --tasks")
        result = overlaps(
            session.neurons, data, rule=session.settings.rule, steps=steps, seed=seed,
            book=session.book, tell=session.tell,
        )  # fmt: skip
        done = _experiment(session, "overlap", result)
    page = overlap_page(result, title=f"Commonality neurons of {done.model.name}")
    write(page, Path(common.out).expanduser() / "overlap.html")
    _finish(common, done, "overlap.json", json=json)


@app.command()
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
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    aggregate: Aggregate = "mean",
    share: Share = 0.5,
    count: Count = None,
    threshold: Threshold = 0.2,
    knowledge_share: KnowledgeShare = 0.4,
    search: Search = "masked-gradient",
    rows: Rows = None,
    items: Items = 100,
    report_items: ReportItems = 100,
    answer_tokens: AnswerTokens = None,
    fields: Fields = "",
    include_path: IncludePath = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Erase located neurons and as many random ones; held-out items of the task and of others."""
    from broca.neurons import SensingOptions, require_method
    from broca.neurons import erase as run

    names = [name.strip() for name in methods.split(",") if name.strip()]
    for name in names or [methods]:
        require_method(name)
    common = _Common(model, out, dtype, device, allow_pickle, include_path, plain)
    with _session(
        common, rule=_rule(sigma, scope, aggregate, share, count), method=names[0], steps=steps,
        threshold=threshold, knowledge_share=knowledge_share, items=items, seed=seed,
        report_items=report_items, answer_tokens=answer_tokens, fields=_fields(fields),
        sensing=SensingOptions(search, rows),
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
        result = run(
            session.neurons, sets, [session.parts(name).report for name in (task, *other)],
            measurer=session.measurer, factor=factor, draws=draws, matching=_matching(matching),
            seed=seed,
        )  # fmt: skip
        found = {name: session.neurons.names(columns) for name, columns in sets.items()}
        done = _experiment(
            session, "erase", result, notes, task=task, methods=names, factor=factor,
            matching=matching, neurons=found,
        )  # fmt: skip
    _finish(common, done, "erase.json", json=json)


@app.command()
def enhance(
    model: Model,
    task: Task,
    others: Others = "",
    method: MethodName = "cnl",
    lr: Lr = 1e-5,
    epochs: Epochs = 20,
    batch: BatchSize = 8,
    patience: Patience = 3,
    without: Annotated[
        str, typer.Option(help="Located neurons while all others train: zeroed or frozen.")
    ] = "zeroed",
    draws: Draws = 3,
    matching: Matching = "size",
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    aggregate: Aggregate = "mean",
    share: Share = 0.5,
    count: Count = None,
    items: Items = 100,
    report_items: ReportItems = 300,
    answer_tokens: AnswerTokens = None,
    fields: Fields = "",
    include_path: IncludePath = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Train only located neurons, only others, or random ones; measure on held-out items."""
    from broca.neurons import TuningOptions
    from broca.neurons import enhance as run

    options = TuningOptions(lr, epochs, batch, patience)
    common = _Common(model, out, dtype, device, allow_pickle, include_path, plain)
    with _session(
        common, rule=_rule(sigma, scope, aggregate, share, count), method=method, steps=steps,
        items=items, seed=seed, report_items=report_items, answer_tokens=answer_tokens,
        fields=_fields(fields),
    ) as session:  # fmt: skip
        other = session.other_tasks(task, others)
        parts = session.parts(task)
        choice = _require(session.choose(task, others=other), task)
        result = run(
            session.neurons, choice.columns, parts.locate, parts.confirm,
            [parts.report, *(session.parts(name).report for name in other)],
            measurer=session.measurer, options=options, draws=draws,
            without=without, matching=_matching(matching), seed=seed,  # type: ignore[arg-type]
            tell=session.tell,
        )  # fmt: skip
        done = _experiment(
            session, "enhance", result, task=task, lr=lr, epochs=epochs, batch=batch,
            patience=patience, without=without, matching=matching,
        )  # fmt: skip
    _finish(common, done, "enhance.json", json=json)


@app.command()
def cross(
    model: Model,
    tasks: Tasks = "auto",
    action: Annotated[str, typer.Option(help="erase or tune the located neurons.")] = "erase",
    method: MethodName = "cnl",
    lr: Lr = 1e-5,
    epochs: Epochs = 20,
    batch: BatchSize = 8,
    patience: Patience = 3,
    draws: Draws = 3,
    matching: Matching = "size",
    steps: Steps = 19,
    sigma: Sigma = 6.0,
    scope: Scope = "global",
    aggregate: Aggregate = "mean",
    share: Share = 0.5,
    count: Count = None,
    items: Items = 100,
    report_items: ReportItems = 100,
    answer_tokens: AnswerTokens = None,
    fields: Fields = "",
    include_path: IncludePath = None,
    seed: Seed = 0,
    out: Out = "broca-neurons",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
    plain: Plain = False,
) -> None:
    """Locate on one data set, erase or train there, and measure on every other."""
    from broca.neurons import TuningOptions
    from broca.neurons import cross as run

    options = TuningOptions(lr, epochs, batch, patience)
    common = _Common(model, out, dtype, device, allow_pickle, include_path, plain)
    with _session(
        common, rule=_rule(sigma, scope, aggregate, share, count), method=method, steps=steps,
        items=items, seed=seed, report_items=report_items, answer_tokens=answer_tokens,
        fields=_fields(fields),
    ) as session:  # fmt: skip
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
        result = run(
            session.neurons, sets, [session.parts(name) for name in names],
            action=action, measurer=session.measurer, options=options,  # type: ignore[arg-type]
            draws=draws, matching=_matching(matching), seed=seed, tell=session.tell,
        )  # fmt: skip
        done = _experiment(
            session, "cross", result, notes, action=action, lr=lr, epochs=epochs, matching=matching
        )
    _finish(common, done, "cross.json", json=json)


def _matching(text: str) -> Any:
    if text not in ("size", "layer"):
        raise BadInput(f"--matching '{text}' is unknown: use size or layer")
    return text
