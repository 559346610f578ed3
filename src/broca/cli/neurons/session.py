"""What the neuron verbs do alike: open a model and an out folder, write and show a result."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.neurons import tables
from broca.cli.neurons.options import Group, RunOptions
from broca.cli.progress import ProgressLine

if TYPE_CHECKING:
    from broca.neurons import Session
    from broca.results.neurons import NeuronExperiment, NeuronSet


@contextmanager
def opened(model: str, run: RunOptions, *groups: Group, **settings: Any) -> Iterator[Session]:
    """Opens the out folder and the model; shows progress meanwhile.

    Args:
        model: The model's name.
        run: Where and how the verb runs.
        groups: Options that decide settings.
        settings: Other settings, by the names of `broca.neurons.Settings`.

    Raises:
        BrocaError: Any of it is refused.
    """
    from broca.models import load
    from broca.neurons import Session, Settings, require_method
    from broca.results.files import check_out_folder

    for group in groups:
        settings.update(group.settings())
    if "method" in settings:
        require_method(settings["method"])
    include_path = settings.pop("include_path", None)
    prepared = Settings(**settings, seed=run.seed)
    folder = check_out_folder(run.out)
    progress = ProgressLine(plain=run.plain)
    try:
        progress("loading the model", None)
        loaded = load(
            model,
            dtype=run.dtype,
            device=run.device,
            allow_pickle=run.allow_pickle,
            components="neurons",
        )
        yield Session(loaded, prepared, out=folder, include_path=include_path, tell=progress)
    finally:
        progress.close()


def experiment(
    session: Session, verb: str, result: Any, notes: Sequence[str] = (), **settings: Any
) -> NeuronExperiment:
    """What a verb found, with the settings of its session and those of its own."""
    from broca.results.neurons import NeuronExperiment

    record = {**session.settings.record(), **settings}
    return NeuronExperiment(
        command=f"broca neurons {verb}",
        model=session.model_info,
        settings=record,
        result=result,
        notes=tuple(notes),
    )


def finish(run: RunOptions, result: NeuronSet | NeuronExperiment, name: str) -> None:
    """Writes the result into the out folder, and prints it as JSON or as a table."""
    from broca.results.codec import encode
    from broca.results.files import write_beside

    path = Path(run.out).expanduser() / name
    write_beside(path, encode(result))
    if run.json:
        sys.stdout.write(encode(result))
    else:
        tables.show(result, path)
