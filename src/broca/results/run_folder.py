"""What an out folder says of its run: `reproduce.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broca.results.base import SCHEMA


@dataclass(frozen=True, kw_only=True)
class RunFolderRecord:
    """What was requested in a folder, so that the same command goes on with it.

    Attributes:
        schema: Version of this layout.
        command: The command line.
        asked: What decides the result: another value is another run.
        how: What only decides how it is computed.
        journal: The journal, relative to the folder.
        versions: Versions of what a result depends on.
        machine: The machine, as far as results may depend on it.
        digests: Digests of weights, tokenizer, tasks and items; empty until the run has begun.
        finished: Size in bytes and time in nanoseconds of every file that the result was made of
            and of the result's own, and the time of folders; empty until the run is finished, and
            where these files cannot be told.
    """

    schema: int = SCHEMA
    command: str
    asked: dict[str, Any]
    how: dict[str, Any]
    journal: str
    versions: dict[str, str]
    machine: dict[str, Any]
    digests: dict[str, Any] = field(default_factory=dict)
    finished: dict[str, list[int]] = field(default_factory=dict)
