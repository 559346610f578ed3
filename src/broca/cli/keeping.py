"""The parts that all measuring commands share: out folder, journal, and Ctrl+C."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from broca.cli.commands import FolderOptions, OutputOptions, PrintOptions
from broca.cli.output import show
from broca.cli.progress import ProgressDisplay
from broca.cli.tracking import Logged, logged
from broca.cli.wording import tell
from broca.errors import BadInput
from broca.options import (
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    RunOptions,
    TaskOptions,
    parts_of,
)

if TYPE_CHECKING:
    from broca.results.base import Result
    from broca.runs.folder import RunFolder
    from broca.runs.workspace import Workspace

R = TypeVar("R", bound="Result")

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
        `asked` determines the result, `how` only how it is computed.
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
        elif not isinstance(value, JournalOptions):
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
    return {"asked": settings, "how": how}


def settings_of(verb: str, **parameters: Any) -> dict[str, Any]:
    """Returns the parameters that determine the result of a command in a shared folder.

    Args:
        verb: The words of the command.
        parameters: As for `record_of`.
    """
    return {"verb": verb, **record_of(**parameters)["asked"]}


@dataclass(frozen=True)
class Keeping:
    """The run of a command in its out folder.

    Attributes:
        workspace: Workspace of the verb, with the folder's journal or a shared one.
        folder: The claimed folder.
    """

    workspace: Workspace
    folder: RunFolder

    def save(self, result: R) -> tuple[R, tuple[Path, ...]]:
        """Writes the result, and records that the run is finished.

        Returns:
            The result and its files. If the folder already contains an equal result, that result is
            returned with its own time, because rows from the journal are not measured again.
        """
        from broca.results.codec import encode
        from broca.runs.sources import sources_of

        path = self.folder.path
        if (path / result.FILE).is_file():
            with suppress(BadInput):
                earlier: Any = type(result).read(path)
                now: Any = result
                cost = replace(now.cost, wall_s=earlier.cost.wall_s)
                if encode(replace(now, cost=cost)) == encode(earlier):
                    result = earlier
        files = result.save(path)
        settings = self.folder.record["asked"]
        sources = sources_of(settings["model"], settings["revision"], self.workspace.catalogs)
        self.folder.finish(sources, files)
        return result, files


@contextmanager
def keeping(
    out: str,
    *,
    verb: str,
    record: Mapping[str, Any],
    folder_options: FolderOptions,
    run_options: RunOptions,
) -> Iterator[Keeping]:
    """Claims the out folder and keeps measured rows there; Ctrl+C ends the run after the batch.

    Args:
        out: The out folder.
        verb: The command's first word.
        record: The record that `record_of` returned.
        folder_options: Whether a run that is already there is resumed or replaced.
        run_options: A shared journal (the folder's journal if None), and where rows are measured.

    Raises:
        BrocaError: The folder contains the results of another command.
    """
    from broca.results.files import check_out_folder
    from broca.runs.folder import RunFolder, folder_workspace

    shared = run_options.journal_options.journal
    folder = RunFolder.claim(
        check_out_folder(out),
        verb=verb,
        options=record["asked"],
        how=record["how"],
        command=["broca", *sys.argv[1:]],
        journal=None if shared is None else str(shared),
        **asdict(folder_options),
    )
    with folder_workspace(folder, **_workspace_options(run_options)) as workspace:
        yield Keeping(workspace, folder)


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
    folder_options = output_options.folder_options
    result = None if folder_options.fresh else _finished(kind, out, verb=verb, record=record)
    if result is not None:
        return result
    with (
        closing(ProgressDisplay(output_options.print_options)) as progress,
        keeping(
            out, verb=verb, record=record, folder_options=folder_options, run_options=run_options
        ) as run,
        logged(output_options.log_options, verb, record["asked"], progress) as log,
    ):
        import broca
        from broca.runs.folder import arguments_of

        measured: R = getattr(broca, verb)(
            **arguments_of(record), journal=run.workspace, on_progress=log.report
        )
        result, files = run.save(measured)
        log.result(result, files)
    return result


def _finished(kind: type[R], out: str, *, verb: str, record: Mapping[str, Any]) -> R | None:
    """Returns the result of the same command if the folder contains it unchanged.

    It prints this on stderr. The model and the tasks are not read; only the sizes and times of
    their files are compared.
    """
    from broca.runs.folder import RunFolder

    folder = Path(out).expanduser()
    if not RunFolder.is_finished(folder, verb=verb, options=record["asked"]):
        return None
    try:
        result = kind.read(folder)
    except BadInput:  # edited without a change of size and time: the run writes it again
        return None
    tell(f"finished; nothing to do: {folder} holds the result; --fresh measures it again")
    return result


def shared_result(
    kind: type[R], folder: Path, settings: Mapping[str, Any]
) -> tuple[R, tuple[Path, ...]] | None:
    """Returns the result of the same command in a shared folder, and prints this on stderr.

    Args:
        kind: Class of the result.
        folder: The out folder.
        settings: The parameters that `settings_of` returned.

    Returns:
        The result and its files; None if there is none, or if anything has changed since.
    """
    from broca.runs.finished import finished_files

    files = finished_files(folder, settings)
    if not files:
        return None
    try:
        result = kind.read(files[0])
    except BadInput:  # edited without a change of size and time: it is written again
        return None
    tell(f"finished; nothing to do: {files[0]} holds the result; remove it to run again")
    return result, files


def show_finished(
    kind: type[R],
    folder: Path,
    settings: Mapping[str, Any],
    options: PrintOptions,
    in_words: Callable[[R, Path], None],
) -> bool:
    """Prints the result of the same command in a shared folder, if there is one.

    Args:
        kind: Class of the result.
        folder: The out folder.
        settings: The parameters that `settings_of` returned.
        options: How the result is printed.
        in_words: Prints it in words, with the path of its page.

    Returns:
        Whether the result exists, so that nothing is left to do.
    """
    finished = shared_result(kind, folder, settings)
    if finished is None:
        return False
    result, files = finished
    show(result, files[-1], options, in_words)
    return True


def finish_shared(
    settings: Mapping[str, Any],
    files: Sequence[Path],
    options: RunOptions,
    models: Sequence[tuple[str, str | None]],
    data_sets: Sequence[str] = (),
) -> None:
    """Records that a command in a shared folder is finished.

    Args:
        settings: The parameters that `settings_of` returned.
        files: The files that it wrote, the result's file first.
        options: The options with which it measured.
        models: The names and revisions of the models that it loaded.
        data_sets: Names of the data sets that it read without a catalog.
    """
    from broca.runs.finished import note_finished
    from broca.runs.sources import sources_of

    workspace: Any = options.journal_options.journal
    sources: list[Path] | None = list(_result_files(settings))
    for model, revision in models:
        read = sources_of(model, revision, workspace.catalogs, data_sets)
        sources = None if sources is None or read is None else [*sources, *read]
    note_finished(files[0].parent, settings, sources, files)


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


@contextmanager
def logged_measuring(
    out: str | Path,
    settings: Mapping[str, Any],
    run_options: RunOptions,
    output_options: OutputOptions,
) -> Iterator[tuple[RunOptions, Logged]]:
    """Keeps rows like `measuring`, and logs the command if a tracker is named.

    Args:
        out: The out folder.
        settings: The parameters that `settings_of` returned.
        run_options: As for `measuring`.
        output_options: Where the command is logged, and how progress is shown.

    Yields:
        The options with which the verb measures, and its log.
    """
    with (
        measuring(out, run_options, output_options.print_options) as (_, options, progress),
        logged(output_options.log_options, settings["verb"], settings, progress) as log,
    ):
        yield options, log


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
