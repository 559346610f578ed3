"""What the neuron commands do alike: open a model and an out folder, write and show a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli import commands
from broca.cli.commands import PrintOptions
from broca.cli.neurons import tables
from broca.cli.output import print_result
from broca.cli.progress import ProgressLine
from broca.options import (
    DataOptions,
    MethodOptions,
    ModelOptions,
    RuleOptions,
    SourceOptions,
)

if TYPE_CHECKING:
    from broca.neurons import Session
    from broca.results.neurons import NeuronExperiment, NeuronSet

SENTENCES = {
    **commands.SENTENCES,
    "task": "A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines "
    "file).",
    "tasks": "Data sets, T1,T2,..., or auto: all shipped tasks.",
    "others": "Data sets to measure on besides: T1,T2, auto, or nothing.",
    "method": "cnl, knowledge-neurons, activation, gradient, random or sensing.",
    "items": "Most items to locate on.",
    "report_items": "Most items to measure on.",
    "draws": "Random sets to compare each located set with.",
    "matching": "Random sets match the size, or the number in every layer.",
    "out": "Folder for results; item scores there are reused.",
}
"""Sentences of parameters that several neuron commands have."""

command = partial(commands.command, sentences=SENTENCES)
"""Makes a function a neuron command."""


@contextmanager
def opened(
    model: str,
    *,
    out: str,
    seed: int,
    rule_options: RuleOptions,
    model_options: ModelOptions,
    print_options: PrintOptions,
    source_options: SourceOptions | None = None,
    data_options: DataOptions | None = None,
    method_options: MethodOptions | None = None,
    **settings: Any,
) -> Iterator[Session]:
    """Opens the out folder and the model; shows progress meanwhile.

    Args:
        model: The model's name.
        out: The out folder.
        seed: Seed of everything random.
        rule_options: Which neurons are selected.
        model_options: How the model is loaded.
        print_options: How progress is shown.
        source_options: Where tasks come from.
        data_options: How data sets are read.
        method_options: What single methods need.
        settings: Other settings, by the names of `broca.neurons.Settings`.

    Raises:
        BrocaError: Any of it is refused.
    """
    from broca.models import load
    from broca.neurons import Rule, SensingOptions, Session, Settings, require_method
    from broca.results.files import check_out_folder

    rule = asdict(rule_options)
    settings["steps"] = rule.pop("steps")
    settings["rule"] = Rule(**rule)
    if method_options is not None:
        settings["threshold"] = method_options.threshold
        settings["knowledge_share"] = method_options.knowledge_share
        settings["sensing"] = SensingOptions(method_options.search, method_options.rows)
    if data_options is not None:
        settings["answer_tokens"] = data_options.answer_tokens
        settings["fields"] = data_options.columns
    if "method" in settings:
        require_method(settings["method"])
    prepared = Settings(**settings, seed=seed)
    folder = check_out_folder(out)
    include_path = None if source_options is None else source_options.include_path
    with closing(ProgressLine(plain=print_options.plain)) as progress:
        progress("loading the model", None)
        gated = load(model, **{**asdict(model_options), "components": "neurons"})
        yield Session(gated, prepared, out=folder, include_path=include_path, tell=progress)


def experiment(
    session: Session, verb: str, result: Any, notes: Sequence[str] = (), **settings: Any
) -> NeuronExperiment:
    """What a verb measured, with the settings of its session and those of its own."""
    from broca.results.neurons import NeuronExperiment

    return NeuronExperiment(
        command=f"broca neurons {verb}",
        model=session.model_info,
        settings={**session.settings.record(), **settings},
        result=result,
        notes=tuple(notes),
    )


def finish(
    result: NeuronSet | NeuronExperiment, name: str, *, out: str, print_options: PrintOptions
) -> None:
    """Writes the result into the out folder, and prints it as JSON or as a table."""
    from broca.results.codec import encode
    from broca.results.files import write_beside

    path = Path(out).expanduser() / name
    write_beside(path, encode(result))
    if print_options.json:
        print_result(result)
    else:
        tables.show(result, path)
