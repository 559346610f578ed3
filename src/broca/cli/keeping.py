"""The parts that all measuring commands share: out folder, journal, and Ctrl+C."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from broca.cli.commands import OutputOptions, PrintOptions
from broca.cli.progress import ProgressDisplay
from broca.cli.tracking import Report, logged
from broca.cli.wording import tell
from broca.errors import BadInput
from broca.options import (
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    ProgressOptions,
    RunOptions,
    TaskOptions,
    parts_of,
)

if TYPE_CHECKING:
    from broca.results.base import Result
    from broca.results.localization import Localization
    from broca.runs.folder import RunFolder
    from broca.runs.workspace import Workspace
    from broca.tasks import Catalog

R = TypeVar("R", bound="Result")

LoadedModels = Sequence[tuple[str, str | None]]
"""Names and revisions of the models that a command loaded."""

HOW = {
    *(field.name for cls in (EngineOptions, ExecutorOptions) for field in fields(cls)),
    "device",
    "device_map",
    "allow_pickle",
}
"""Options that determine only how a result is computed."""

PLACES = ("target", "models", "neurons", "family", "control", "pairs")
"""Parameters that may name a file or a folder, besides the model and `include_path`."""


def record_of(**parameters: Any) -> dict[str, dict[str, Any]]:
    """Returns the parameters of a command as `reproduce.json` records them.

    Args:
        parameters: The parameters of the verb; option classes stand for their fields.

    Returns:
        `options` determine the result, `how` only how it is computed.
    """
    settings: dict[str, Any] = {}
    how: dict[str, Any] = {}
    run_options: RunOptions = parameters.pop("run_options")
    groups = {field.name: getattr(run_options, field.name) for field in fields(run_options)}
    for name, value in (parameters | groups).items():
        if isinstance(value, TaskOptions):
            settings[name] = asdict(value)
        elif not is_dataclass(value):
            settings[name] = value
        elif not isinstance(value, JournalOptions | ProgressOptions):
            for part in parts_of(value):
                for field in fields(part):
                    kind = how if field.name in HOW else settings
                    kind[field.name] = getattr(part, field.name)
    for name in ("model", "include_path", *PLACES):
        value = settings.get(name)
        if isinstance(value, list):
            settings[name] = [_placed(word) for word in value]
        elif value is not None:
            settings[name] = _placed(value)
    return {"options": settings, "how": how}


def settings_of(verb: str, **parameters: Any) -> dict[str, Any]:
    """Returns the parameters that determine the result of a command in a shared folder.

    Args:
        verb: The words of the command.
        parameters: As for `record_of`.
    """
    return {"verb": verb, **record_of(**parameters)["options"]}


def kept_result(
    kind: type[R],
    out: str,
    record: Mapping[str, Any],
    run_options: RunOptions,
    output_options: OutputOptions,
    *,
    verb: str,
) -> R:
    """Returns the result of a verb from its out folder, or runs the verb and keeps it there.

    Ctrl+C ends the run after the batch.

    Args:
        kind: Class of the result.
        out: The out folder.
        record: The record that `record_of` returned.
        run_options: A shared journal (the folder's journal if None), and where rows are measured.
        output_options: Whether a run that is already there is resumed or replaced, and where this
            run is logged.
        verb: The verb's name, the command's first word.

    Raises:
        BrocaError: The folder contains the results of another command, or a parameter is refused.
    """
    from broca.results.files import check_out_folder
    from broca.runs.folder import RunFolder, arguments_of, folder_workspace

    place, settings = Path(out).expanduser(), record["options"]
    folder_options = output_options.folder_options
    if not folder_options.fresh and RunFolder.is_finished(place, verb=verb, options=settings):
        result = _finished(kind, place, "--fresh measures it again")
        if result is not None:
            return result
    shared = run_options.journal_options.journal
    with closing(ProgressDisplay(output_options.print_options)) as progress:
        folder = RunFolder.claim(
            check_out_folder(out),
            verb=verb,
            options=settings,
            how=record["how"],
            command=["broca", *sys.argv[1:]],
            journal=None if shared is None else str(shared),
            **asdict(folder_options),
        )
        with (
            folder_workspace(folder, **_workspace_options(run_options)) as workspace,
            logged(output_options.log_options, verb, settings, progress) as log,
        ):
            import broca

            measured: R = getattr(broca, verb)(
                **arguments_of(record), journal=workspace, on_progress=log.report
            )
            result, files = _saved(measured, folder, workspace)
            log.result(result, files)
    return result


def _saved(result: R, folder: RunFolder, workspace: Workspace) -> tuple[R, tuple[Path, ...]]:
    """Writes the result of a run into its folder, and records that the run is finished.

    Returns:
        The result and its files. If the folder already contains an equal result, that result is
        returned with its own time, because rows from the journal are not measured again.
    """
    from broca.results.codec import encode
    from broca.runs.sources import sources_of

    if (folder.path / result.FILE).is_file():
        with suppress(BadInput):
            earlier: Any = type(result).read(folder.path)
            now: Any = result
            cost = replace(now.cost, wall_s=earlier.cost.wall_s)
            if encode(replace(now, cost=cost)) == encode(earlier):
                result = earlier
    files = result.save(folder.path)
    settings = folder.record["options"]
    sources = sources_of(settings["model"], settings["revision"], workspace.catalogs)
    folder.finish(sources, files)
    return result, files


def _finished(kind: type[R], path: Path, advice: str) -> R | None:
    """Reads the result of a finished command, and prints on stderr that nothing is left to do.

    Args:
        kind: Class of the result.
        path: The result's file, or the folder of its run.
        advice: How the command can be run again.

    Returns:
        The result; None if it was edited without a change of size and time, so that the command
        writes it again.
    """
    try:
        result = kind.read(path)
    except BadInput:
        return None
    tell(f"finished; nothing to do: {path} holds the result; {advice}")
    return result


def shared_result(
    kind: type[R],
    folder: Path,
    settings: Mapping[str, Any],
    run_options: RunOptions,
    output_options: OutputOptions,
    measure: Callable[[RunOptions, Report], tuple[R, LoadedModels]],
    *,
    run: Localization | None = None,
    data_sets: Sequence[str] = (),
) -> tuple[R, tuple[Path, ...]]:
    """Returns the result of a command from a shared out folder, or measures and writes it there.

    Args:
        kind: Class of the result.
        folder: The out folder, which exists.
        settings: The parameters that `settings_of` returned.
        run_options: A shared journal (the folder's journal if None), and how rows are measured.
        output_options: Where the command is logged, and how progress is shown.
        measure: Measures the result with options that keep the rows, and reports its progress.
        run: The localization that a verification or a stress test belongs to.
        data_sets: Names of the data sets that are read without a catalog.

    Returns:
        The result and its files, the result's file first.

    Raises:
        Interrupted: The user interrupted the command.
        BrocaError: The folder, the journal or a parameter is refused.
    """
    from broca.runs.finish_stamps import finished_files, note_finished

    files = finished_files(folder, settings)
    if files:
        result = _finished(kind, files[0], "remove it to run again")
        if result is not None:
            return result, files
    with (
        measuring(folder, run_options, output_options.print_options) as (_, options, progress),
        logged(output_options.log_options, settings["verb"], settings, progress) as log,
    ):
        from broca.reports import write

        result, models = measure(options, log.report)
        files = write(result, folder, run=run)
        log.result(result, files)
        workspace: Any = options.journal_options.journal
        sources = _sources(settings, models, workspace.catalogs, data_sets)
        note_finished(folder, settings, sources, files)
    return result, files


def _sources(
    settings: Mapping[str, Any],
    models: LoadedModels,
    catalogs: Sequence[Catalog],
    data_sets: Sequence[str],
) -> list[Path] | None:
    """Returns the files that a result in a shared folder was computed from; None if unknown."""
    from broca.runs.sources import sources_of

    sources = list(_result_files(settings))
    for model, revision in models:
        read = sources_of(model, revision, catalogs, data_sets)
        if read is None:
            return None
        sources += read
    return sources


def _result_files(settings: Mapping[str, Any]) -> Iterator[Path]:
    """Returns the files that the parameters of a command name; for a run's folder, its result."""
    from broca.results.reading import KINDS

    for name in PLACES:
        value = settings.get(name)
        for word in value if isinstance(value, list) else [value]:
            place = _place_of(word)
            if place is not None and place.is_file():
                yield place
            elif place is not None:
                yield from (place / kind.FILE for kind in KINDS[:3] if (place / kind.FILE).exists())


@contextmanager
def measuring(
    out: str | Path, run_options: RunOptions, print_options: PrintOptions
) -> Iterator[tuple[Path, RunOptions, ProgressDisplay]]:
    """Keeps the rows that a command measures in a shared out folder.

    Args:
        out: The out folder.
        run_options: A shared journal (the folder's journal if None), and how rows are measured.
        print_options: How progress is shown.

    Yields:
        The folder, the options with which the verb measures there, and its `on_progress`.

    Raises:
        Interrupted: The user interrupted the command.
        BrocaError: The folder or the journal cannot be used.
    """
    from broca.results.files import check_out_folder
    from broca.runs.folder import JOURNAL, journal_workspace

    folder = check_out_folder(out)
    journal = run_options.journal_options.journal or folder / JOURNAL
    with (
        closing(ProgressDisplay(print_options)) as progress,
        journal_workspace(journal, **_workspace_options(run_options)) as workspace,
    ):
        yield folder, run_options.within(workspace), progress


def _workspace_options(run_options: RunOptions) -> dict[str, Any]:
    """Returns how rows are measured and kept in a workspace, and how messages are shown."""
    return {
        "goes_on": this_command(),
        "executor": run_options.executor_options,
        "keep_outputs": run_options.journal_options.keep_outputs,
        "say": tell,
    }


def this_command() -> str:
    """Returns the command that resumes this run."""
    return shlex.join(["broca", *(word for word in sys.argv[1:] if word != "--fresh")])


def _placed(word: Any) -> Any:
    """Returns the absolute path of a file or folder that a word names, or the word itself."""
    place = _place_of(word)
    return word if place is None else str(place)


def _place_of(word: Any) -> Path | None:
    """Returns the file or folder that a parameter names; None if it names something else."""
    if not isinstance(word, str) or not word:
        return None
    place = Path(word).expanduser()
    return place.absolute() if place.exists() else None
