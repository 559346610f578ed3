"""The exception tree: every error a user can cause or meet, as one line and an exit code.

A message names what happened, the likely cause and the next step. The CLI prints it as it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BrocaError(Exception):
    """Base of all errors that broca raises on purpose; `exit_code` is what the CLI returns."""

    exit_code = 2


class BadInput(BrocaError):
    """An argument, file or model that cannot be used as given."""


class UnknownName(BadInput):
    """A model, task, method or component that does not exist."""


class UnsupportedModel(BadInput):
    """A model whose architecture is not covered; nothing was changed in it."""


class TaskUnusable(BadInput):
    """A task that exists but cannot be run: no data, no items, no usable metric."""


class NothingToLocalize(BadInput):
    """The unablated model does not do the task, so no component can be necessary for it."""


class SelfTestFailed(BrocaError):
    """The gates do not do on this model what they must; no figure would mean anything."""


class BadLogits(BrocaError):
    """The model returned NaN or infinite logits.

    Args:
        message: What happened.
        request: Position of the request at fault among those that were run.
    """

    def __init__(self, message: str, *, request: int) -> None:
        super().__init__(message)
        self.request = request


class BadResponse(BrocaError):
    """A row's response is no finite number; no figure may be made from it."""


class OutFolderTaken(BadInput):
    """The out folder holds the results of another command."""


class OutOfMemory(BrocaError):
    """Not even one row fits the memory of the device."""


class MissingExtra(BadInput):
    """A feature needs packages that are not installed."""


class JournalError(BrocaError):
    """Something is wrong with a journal; nothing that it held was changed."""


class JournalBusy(JournalError):
    """Another process writes to the journal."""


class JournalDamaged(JournalError):
    """A journal that is cut short, was altered, or is no journal."""


class JournalNotWritable(JournalError):
    """The journal cannot be written: the disk is full, or the place is read-only."""


class JournalTooNew(JournalError):
    """A later version of broca wrote the journal."""


class NotInJournal(JournalError):
    """A row is wanted from the journal alone, and was never measured."""


class ExecutorFailed(BrocaError):
    """Workers died or hung too often; what they had measured is kept."""


class NotReproduced(BrocaError):
    """A repetition of a run gave another result."""

    exit_code = 1


class Interrupted(BrocaError):
    """The user asked for an end; what was measured is kept."""

    exit_code = 130


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" for the known name closest to `name`, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
