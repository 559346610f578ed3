"""The record of a run in its out folder: `reproduce.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broca.results.base import SCHEMA


@dataclass(frozen=True, kw_only=True)
class RunFolderRecord:
    """The request of a run, which lets the same command resume it.

    Attributes:
        schema: Version of this layout.
        command: The command line.
        options: The options that determine the result: another value is another run.
        how: The options that determine only how the result is computed.
        journal: The journal, relative to the folder.
        versions: Versions of the packages that a result depends on.
        machine: The properties of the machine that may affect results.
        digests: Digests of weights, tokenizer, tasks and items; empty until the run has begun.
        finished: Size in bytes and time in nanoseconds of every file that the result was computed
            from and of its own files; for folders, number and checksum of names. Empty until the
            run is finished, and if these files are unknown.
    """

    schema: int = SCHEMA
    command: str
    options: dict[str, Any]
    how: dict[str, Any]
    journal: str
    versions: dict[str, str]
    machine: dict[str, Any]
    digests: dict[str, Any] = field(default_factory=dict)
    finished: dict[str, list[int]] = field(default_factory=dict)
