"""What every measuring command shares: its out folder, its journal, and how Ctrl+C ends it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import FolderOptions, PrintOptions
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import tell
from broca.options import EngineOptions, ExecutorOptions, JournalOptions, RunOptions, TaskOptions

if TYPE_CHECKING:
    from broca.runs.workspace import Workspace

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


def keeping(
    out: str,
    *,
    verb: str,
    record: Mapping[str, Any],
    folder_options: FolderOptions,
    run_options: RunOptions,
) -> AbstractContextManager[Workspace]:
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
    return folder_workspace(folder, **_kept(run_options))


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
