"""The record of a run in its out folder: `reproduce.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broca.results.base import SCHEMA


@dataclass(kw_only=True)
class RunFolderRecord:
    """The request of a run, which lets the same command resume it.

    Attributes:
        schema: Version of this layout.
        verb: The verb.
        command: The command line.
        options: The options of the verb, group by group.
        journal: The journal, relative to the folder.
        versions: Versions of the packages that a result depends on.
        machine: The properties of the machine that may affect results.
        digests: Digests of weights, tokenizer, tasks and items; empty until the run has begun.
    """

    schema: int = SCHEMA
    verb: str
    command: str
    options: dict[str, Any]
    journal: str
    versions: dict[str, str]
    machine: dict[str, Any]
    digests: dict[str, Any] = field(default_factory=dict)
