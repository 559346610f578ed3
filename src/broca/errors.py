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


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" for the known name closest to `name`, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
