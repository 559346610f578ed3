"""What every measuring command shares: its out folder, its journal, and how Ctrl+C ends it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from broca.cli.commands import FolderOptions, OutputOptions, PrintOptions
from broca.cli.progress import ProgressDisplay
from broca.cli.tracking import Logged, logged
from broca.cli.wording import tell
from broca.errors import BadInput
from broca.options import EngineOptions, ExecutorOptions, JournalOptions, RunOptions, TaskOptions

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
"""Options that only decide how a result is computed."""


def record_of(**parameters: Any) -> dict[str, dict[str, Any]]:
    """What a command was called with, as `reproduce.json` holds it.

    Args:
        parameters: Those of the verb; option classes stand for their fields.

    Returns:
        `asked` decides the result, `how` only how it is computed.
    """
    asked: dict[str, Any] = {}
    how: dict[str, Any] = {}
    run_options: RunOptions = parameters.pop("run_options")
    groups = {field.name: getattr(run_options, field.name) for field in fields(run_options)}
    for name, value in (parameters | groups).items():
        if isinstance(value, TaskOptions):
            asked[name] = asdict(value)
        elif not is_dataclass(value):
            asked[name] = value
        elif not isinstance(value, JournalOptions):
            for field in fields(value):
                kind = how if field.name in HOW else asked
                kind[field.name] = getattr(value, field.name)
    if Path(asked["model"]).is_dir():
        asked["model"] = _absolute(asked["model"])
    if asked["include_path"] is not None:
        asked["include_path"] = _absolute(asked["include_path"])
    return {"asked": asked, "how": how}


@dataclass(frozen=True)
class Keeping:
    """A run that a command keeps in its out folder.

    Attributes:
        workspace: Where the verb measures: the folder's journal, or a shared one.
        folder: The claimed folder.
    """

    workspace: Workspace
    folder: RunFolder

    def save(self, result: R) -> tuple[R, tuple[Path, ...]]:
        """Writes the result, and notes that the run is finished.

        Returns:
            The result and its files. Where the folder holds an equal result already, that one with
            the time that it took then: what the journal answers again is no measurement.
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
        asked = self.folder.record["asked"]
        sources = sources_of(asked["model"], asked["revision"], self.workspace.catalogs)
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
    """Claims the out folder and keeps what is measured there; Ctrl+C ends after the batch.

    Args:
        out: The out folder.
        verb: The command's first word.
        record: What `record_of` says.
        folder_options: What happens to a run that is already there.
        run_options: A journal to share, the folder's own if None, and where rows are measured.

    Raises:
        BrocaError: The folder holds something else.
    """
    from broca.results.files import check_out_folder
    from broca.runs.folder import RunFolder, folder_workspace

    shared = run_options.journal_options.journal
    folder = RunFolder.claim(
        check_out_folder(out),
        verb=verb,
        asked=record["asked"],
        how=record["how"],
        command=["broca", *sys.argv[1:]],
        journal=None if shared is None else str(shared),
        **asdict(folder_options),
    )
    with folder_workspace(folder, **_kept(run_options)) as workspace:
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
    """What a verb of `broca` returns, kept in an out folder: measured now, or read where it is.

    Args:
        kind: What the verb returns.
        out: The out folder.
        record: What `record_of` says.
        run_options: A journal to share, the folder's own if None, and where rows are measured.
        output_options: What happens to a run that is already there, and where this one is logged.
        verb: The verb's name, the command's first word.

    Raises:
        BrocaError: The folder holds something else, or any of the verb's parameters is refused.
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
    """The result of the same command, where the folder holds it and nothing has changed since.

    It says so on stderr. Neither the model nor the tasks are read: their files' sizes and times are
    compared.
    """
    from broca.runs.folder import RunFolder

    folder = Path(out).expanduser()
    if not RunFolder.is_finished(folder, verb=verb, asked=record["asked"]):
        return None
    try:
        result = kind.read(folder)
    except BadInput:  # changed by hand without a trace in size and time: the run writes it anew
        return None
    tell(f"finished; nothing to do: {folder} holds the result; --fresh measures it anew")
    return result


@contextmanager
def measuring(
    out: str | Path, run_options: RunOptions, print_options: PrintOptions
) -> Iterator[tuple[Path, RunOptions, ProgressDisplay]]:
    """What a command measures is kept in an out folder that commands share.

    Args:
        out: The out folder.
        run_options: A journal to share, the folder's own if None, and how rows are measured.
        print_options: How progress is shown.

    Yields:
        The folder, the options with which the verb measures there, and where it reports.

    Raises:
        Interrupted: The user asked for an end.
        BrocaError: The folder or the journal cannot be used.
    """
    from broca.results.files import check_out_folder
    from broca.runs.folder import JOURNAL, journal_workspace

    folder = check_out_folder(out)
    journal = run_options.journal_options.journal or folder / JOURNAL
    with (
        closing(ProgressDisplay(print_options)) as progress,
        journal_workspace(journal, **_kept(run_options)) as workspace,
    ):
        yield folder, run_options.within(workspace), progress


@contextmanager
def logged_measuring(
    out: str | Path,
    run_options: RunOptions,
    output_options: OutputOptions,
    *,
    verb: str,
    **asked: Any,
) -> Iterator[tuple[RunOptions, Logged]]:
    """What a command measures is kept as by `measuring`, and logged if a tracker is named.

    Yields:
        The options with which the verb measures, and where it reports.
    """
    with (
        measuring(out, run_options, output_options.print_options) as (_, options, progress),
        logged(output_options.log_options, verb, asked | asdict(run_options), progress) as log,
    ):
        yield options, log


def _kept(run_options: RunOptions) -> dict[str, Any]:
    """How rows are measured and kept, and who says what the user should know."""
    return {
        "goes_on": this_command(),
        "executor": run_options.executor_options,
        "keep_outputs": run_options.journal_options.keep_outputs,
        "say": tell,
    }


def this_command() -> str:
    """The command that goes on with what this one measured."""
    return shlex.join(["broca", *(word for word in sys.argv[1:] if word != "--fresh")])


def _absolute(path: str) -> str:
    """The path as any folder knows it, for a record that outlives the command's own."""
    return str(Path(path).expanduser().absolute())
