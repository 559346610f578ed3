"""What the neuron commands do alike: call the verb, write its result and show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broca.cli import commands
from broca.cli.commands import PrintOptions, command_of
from broca.cli.keeping import measuring
from broca.cli.neurons import tables
from broca.cli.output import show
from broca.options import RunOptions

SENTENCES = {
    **commands.SENTENCES,
    "task": "A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines "
    "file).",
    "tasks": "Data sets, T1,T2,..., or auto: all shipped tasks.",
    "others": "Further data sets to measure on: T1,T2, auto, or nothing.",
    "method": "cnl, knowledge-neurons, activation, gradient, random or sensing.",
    "items": "Maximum number of items to locate on.",
    "report_items": "Maximum number of items to measure on.",
    "draws": "Random sets to compare each located set with.",
    "matching": "Random sets match the size, or the number in every layer.",
    "out": "Folder for results; what is measured there is reused.",
}
"""Sentences of parameters that several neuron commands have."""

OUT = "broca-neurons"
"""The out folder that the commands share."""


def neuron_command(verb: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function the command of a verb of `broca.neurons`."""
    return command_of(f"broca.verbs.neurons.{verb}:{verb}", sentences=SENTENCES)


def run_verb(
    verb: str,
    out: str,
    print_options: PrintOptions,
    *,
    model: str,
    run_options: RunOptions,
    **parameters: Any,
) -> None:
    """Calls a verb of `broca.neurons`, writes what it returns and prints it.

    Args:
        verb: Its name.
        out: The out folder, whose journal several commands share.
        print_options: What is printed.
        model: The model's name.
        run_options: The journal to share, the folder's own if None, and how it is measured.
        parameters: Other parameters of the verb.

    Raises:
        BrocaError: Any of it is refused.
    """
    from broca import neurons

    with measuring(out, run_options, print_options) as (folder, options, progress):
        result = getattr(neurons, verb)(
            model, **parameters, run_options=options, on_progress=progress
        )
    path = result.save(folder)[0]
    show(result, path, print_options, tables.show)
