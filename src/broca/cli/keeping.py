"""What every measuring command shares: its out folder, its journal, and how Ctrl+C ends it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import FolderOptions
from broca.cli.wording import tell
from broca.options import EngineOptions, ExecutorOptions, JournalOptions, TaskOptions

if TYPE_CHECKING:
    from broca.runs.workspace import Workspace

HOW = {
    *(field.name for cls in (EngineOptions, ExecutorOptions) for field in fields(cls)),
    "device",
    "device_map",
    "allow_pickle",
}
"""Options that only decide how a result is computed."""


def record_of(*groups: Any, **parameters: Any) -> dict[str, dict[str, Any]]:
    """What a command was called with, as `reproduce.json` holds it.

    Args:
        groups: Option classes.
        parameters: Other parameters of the verb.

    Returns:
        `asked` decides the result, `how` only how it is computed.
    """
    asked: dict[str, Any] = dict(parameters)
    how: dict[str, Any] = {}
    for group in groups:
        for name, value in asdict(group).items():
            (how if name in HOW else asked)[name] = value
        if isinstance(group, TaskOptions):
            asked["task_options"] = {field: asked.pop(field) for field in asdict(group)}
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
    journal_options: JournalOptions,
    executor_options: ExecutorOptions,
) -> AbstractContextManager[Workspace]:
    """Claims the out folder and keeps what is measured there; Ctrl+C ends after the batch.

    Args:
        out: The out folder.
        verb: The command's first word.
        record: What `record_of` says.
        folder_options: What happens to a run that is already there.
        journal_options: A journal to share; the folder's own if None.
        executor_options: Where rows are measured.

    Raises:
        BrocaError: The folder holds something else.
    """
    from broca.results.files import check_out_folder
    from broca.runs.folder import RunFolder, folder_workspace

    shared = journal_options.journal
    folder = RunFolder.claim(
        check_out_folder(out),
        verb=verb,
        asked=record["asked"],
        how=record["how"],
        command=["broca", *sys.argv[1:]],
        journal=None if shared is None else str(shared),
        **asdict(folder_options),
    )
    return folder_workspace(
        folder,
        goes_on=this_command(),
        executor=executor_options,
        keep_outputs=journal_options.keep_outputs,
        say=tell,
    )


def this_command() -> str:
    """The command that goes on with what this one measured."""
    return shlex.join(["broca", *(word for word in sys.argv[1:] if word != "--fresh")])


def _absolute(path: str) -> str:
    """The path as any folder knows it, for a record that outlives the command's own."""
    return str(Path(path).expanduser().absolute())
