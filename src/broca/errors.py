"""The exception tree: every error a user can cause or meet, as one line and an exit code.

A message names what happened, the likely cause and the next step. It names parameters in
backticks, which the CLI turns into its flags.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class BrocaError(Exception):
    """An error that broca raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 2


class BadInput(BrocaError):
    """An argument, file or model that cannot be used as given."""


class TooFewRows(BadInput):
    """A row budget that is below the `fewest` rows of a method."""

    def __init__(self, rows: int, fewest: int) -> None:
        super().__init__(
            f"`rows` {rows} is too few: the search alone needs {fewest}; use more rows, "
            "fewer `items` or another method"
        )
        self.fewest = fewest


class UnknownName(BadInput):
    """A model, task, method or component that does not exist."""


class UnsupportedModel(BadInput):
    """A model whose architecture broca does not cover; the model is unchanged."""


class TaskUnusable(BadInput):
    """A task that exists but cannot be run: no data, no items, no usable metric."""


class NothingToLocalize(BadInput):
    """The unablated model does not do the task, so no component can be necessary for it."""


class SelfTestFailed(BrocaError):
    """The gates fail their self-test on this model, so its figures would mean nothing."""


class BadLogits(BrocaError):
    """The model returned NaN or infinite logits.

    Args:
        message: What happened.
        row: Number of the faulty row in its job.
    """

    def __init__(self, message: str, *, row: int = 0) -> None:
        super().__init__(message)
        self.row, self.job = row, 0


class BadResponse(BrocaError):
    """The response of a row is not a finite number, so no figure can be computed from it."""


class OutFolderTaken(BadInput):
    """The out folder holds the results of another command."""


class OutOfMemory(BrocaError):
    """Not even one row fits the memory of the device."""


class MissingExtra(BadInput):
    """A feature needs packages that are not installed."""


class JournalError(BrocaError):
    """A journal cannot be used as it is; its contents were not changed."""


class JournalBusy(JournalError):
    """Another process writes to the journal."""


class JournalDamaged(JournalError):
    """The file is truncated, was altered, or is not a journal."""


class JournalNotWritable(JournalError):
    """The journal cannot be written: the disk is full or the folder is read-only."""


class JournalVersion(JournalError):
    """Another version of broca wrote the journal."""


class NotInJournal(JournalError):
    """The journal lacks a row that is needed, and no model is loaded to measure it."""


class ExecutorFailed(BrocaError):
    """Workers died or hung too often; the rows that they had measured are kept."""


class NotReproduced(BrocaError):
    """A repetition of a run gave another result."""

    exit_code = 1


class CannotRun(BrocaError):
    """Something that every run needs is missing or broken on this machine."""

    exit_code = 1


class Interrupted(BrocaError):
    """The user interrupted the run; the rows that were measured are kept."""

    exit_code = 130


EXIT_CODES = {
    0: "done",
    1: "a repetition gave another result, or broca cannot run here",
    2: "refused or failed, in one line that says what to do",
    130: "interrupted; the same command continues",
}
"""The exit codes of the command line."""


def require_package(name: str, need: str, extra: str) -> Any:
    """Returns a package of an optional extra.

    Raises:
        MissingExtra: It is not installed; the message begins with what needs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(f"{need}: pip install 'broca[{extra}]'") from error


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" for the known name closest to `name`, or an empty string."""
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def require_known(what: str, name: str, known: Iterable[str], *, error: type[BrocaError]) -> None:
    """Refuses a name that is not among the known ones, which the message lists.

    Args:
        what: What has the name, such as `method`.
        name: The name.
        known: The known names.
        error: The class of the error.
    """
    names = list(known)
    if name not in names:
        raise error(f"{what} '{name}' is unknown{nearest(name, names)}; use {', '.join(names)}")


def first_line(error: object) -> str:
    """Returns the first line of an error or a text without its full stop, or its class.

    After a colon at its end follows the next one. At most 1,000 characters are returned.
    """
    lines = [line.strip() for line in str(error).strip().splitlines()] or [type(error).__name__]
    return " ".join(lines[: 1 + lines[0].endswith(":")])[:1000].rstrip(".")


def is_shortage(error: BaseException) -> bool:
    """Whether memory ran out: on a CPU, torch raises a RuntimeError that names its allocator."""
    known = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return known or "DefaultCPUAllocator" in str(error)


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turns any exception of a task's file, functions or data into one line.

    Args:
        what: Beginning of the message: what failed.

    Raises:
        TaskUnusable: An exception other than an error of broca was raised.
    """
    try:
        yield
    except BrocaError:
        raise
    except ImportError as error:
        raise TaskUnusable(
            f"{what}: {first_line(error)}; install what it imports, in a release that has it"
        ) from error
    except Exception as error:  # a task file may raise anything
        cause = f"{type(error).__name__}: {first_line(error)}"
        raise TaskUnusable(f"{what}: {cause}; check its file, its data and the network") from error
