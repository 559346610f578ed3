"""The common steps of the neuron commands: call the verb, write its result and show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broca.cli import commands
from broca.cli.commands import NOTHING_RENAMED, OutputOptions, PrintOptions, command_of
from broca.cli.keeping import LoadedModels, settings_of, shared_result
from broca.cli.neurons import tables
from broca.cli.output import show
from broca.cli.tracking import Report
from broca.cli.wording import listed
from broca.options import RunOptions

SENTENCES = {
    **commands.SENTENCES,
    "task": "A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines "
    "file).",
    "tasks": "Data sets, T1,T2,..., or auto: all shipped tasks.",
    "others": "Other data sets to measure on: T1,T2, auto, or nothing.",
    "method": "{neuron_methods}.",
    "items": "Maximum number of items to locate on.",
    "report_items": "Maximum number of items to measure on.",
    "draws": "Number of random sets to compare with each located set.",
    "matching": "Random sets match the size, or the number in every layer.",
    "out": "Folder for results; measured rows in it are reused.",
}
"""Sentences of parameters that several neuron commands have."""

OUT = "broca-neurons"
"""The out folder that the commands share."""


def neuron_command(
    verb: str, *, renamed: Mapping[str, str] = NOTHING_RENAMED
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function the command of a verb of `broca.neurons`; `renamed` as in `command`."""
    return command_of(f"broca.verbs.neurons.{verb}:{verb}", sentences=SENTENCES, renamed=renamed)


def run_verb(
    verb: str,
    out: str,
    print_options: PrintOptions,
    *,
    model: str,
    run_options: RunOptions,
    **parameters: Any,
) -> None:
    """Calls a verb of `broca.neurons`, writes its result and prints it.

    Args:
        verb: Name of the verb.
        out: The out folder, whose journal several commands share.
        print_options: How the result and the progress are printed.
        model: The model's name.
        run_options: A shared journal (the folder's journal if None), and how rows are measured.
        parameters: Other parameters of the verb.

    Raises:
        BrocaError: The folder or a parameter is refused.
    """
    from broca.results.files import check_out_folder
    from broca.results.neurons import NeuronExperiment, NeuronSet

    settings = settings_of(f"neurons {verb}", model=model, run_options=run_options, **parameters)
    kind: type[NeuronSet | NeuronExperiment[Any]] = (
        NeuronSet if verb == "locate" else NeuronExperiment
    )

    def measure(
        options: RunOptions, report: Report
    ) -> tuple[NeuronSet | NeuronExperiment[Any], LoadedModels]:
        from broca import neurons

        result = getattr(neurons, verb)(
            model, **parameters, run_options=options, on_progress=report
        )
        return result, [(model, options.model_options.revision)]

    result, files = shared_result(
        kind,
        check_out_folder(out),
        settings,
        run_options,
        OutputOptions(print_options=print_options),
        measure,
        data_sets=_data_sets(parameters),
    )
    show(result, files[0], print_options, tables.print_tables)


def _data_sets(parameters: Mapping[str, Any]) -> list[str]:
    """Returns the data sets among the named tasks, which no catalog builds."""
    words = [
        word for name in ("task", "tasks", "others") for word in listed(parameters.get(name) or "")
    ]
    return [word for word in words if word.startswith("data:")]
