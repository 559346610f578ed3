"""What the neuron commands do alike: call the verb, write its result and show it."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Annotated, Any

from broca.cli import commands
from broca.cli.commands import PrintOptions
from broca.cli.keeping import this_command
from broca.cli.neurons import tables
from broca.cli.output import print_result
from broca.cli.progress import ProgressLine
from broca.cli.wording import tell
from broca.options import (
    ExecutorOptions,
    JournalOptions,
    ModelOptions,
    RuleOptions,
    TaskOptions,
    without,
)

ItemRule = Annotated[RuleOptions, without("aggregate", "share")]
NeuronModel = Annotated[ModelOptions, without("components")]
NeuronTasks = Annotated[TaskOptions, without("reference")]

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
    "out": "Folder for results; what is measured there is reused.",
}
"""Sentences of parameters that several neuron commands have."""

command = partial(commands.command, sentences=SENTENCES)
"""Makes a function a neuron command."""


def run_verb(
    verb: str,
    *,
    model: str,
    out: str,
    journal_options: JournalOptions,
    executor_options: ExecutorOptions,
    print_options: PrintOptions,
    **parameters: Any,
) -> None:
    """Calls a verb of `broca.neurons`, writes what it returns and prints it.

    Args:
        verb: Its name.
        model: The model's name.
        out: The out folder, whose journal several commands share.
        journal_options: A journal to share; the folder's own if None.
        executor_options: Where rows are measured.
        print_options: What is printed.
        parameters: Other parameters of the verb.

    Raises:
        BrocaError: Any of it is refused.
    """
    from broca import neurons
    from broca.results.files import check_out_folder
    from broca.runs.folder import journal_workspace

    folder = check_out_folder(out)
    with (
        closing(ProgressLine(plain=print_options.plain)) as progress,
        journal_workspace(
            journal_options.journal or folder / "journal.sqlite",
            goes_on=this_command(),
            executor=executor_options,
            keep_outputs=journal_options.keep_outputs,
            say=tell,
        ) as workspace,
    ):
        result = getattr(neurons, verb)(
            model, **parameters, journal=workspace, on_progress=progress
        )
    path = result.save(folder)[0]
    if print_options.json:
        print_result(result)
    else:
        tables.show(result, path)
