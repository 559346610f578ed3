"""The exception tree: every error a user can cause or meet, as one line and an exit code.

A message names what happened, the likely cause and the next step. It names parameters in
backticks, which the CLI turns into its flags.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BrocaError(Exception):
    """An error that broca raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 2
    remedy = "Do what the message says."


class BadInput(BrocaError):
    """An argument, file or model that cannot be used as given."""

    remedy = "Change what the message names; `broca COMMAND --help` lists the options."


class UnknownName(BadInput):
    """A model, task, method or component that does not exist."""

    remedy = (
        "Take the name that the message suggests, or list them with `broca tasks` or "
        "`broca scan MODEL`."
    )


class UnsupportedModel(BadInput):
    """A model whose architecture is not covered; nothing was changed in it."""

    remedy = "Give a decoder-only model; `docs/architectures.md` lists what is proven."


class TaskUnusable(BadInput):
    """A task that exists but cannot be run: no data, no items, no usable metric."""

    remedy = "Check the task's file and data, or take another metric, response or reference."


class NothingToLocalize(BadInput):
    """The unablated model does not do the task, so no component can be necessary for it."""

    remedy = "Choose a task that the intact model can do."


class SelfTestFailed(BrocaError):
    """The gates do not act on this model as they must; its figures would mean nothing."""

    remedy = "Report the architecture; no figure of this model can be trusted."


class BadLogits(BrocaError):
    """The model returned NaN or infinite logits.

    Args:
        message: What happened.
        request: Position of the request at fault among those that were run.
    """

    remedy = "Use another `dtype` (bfloat16 for float16), or a smaller `scale`."

    def __init__(self, message: str, *, request: int) -> None:
        super().__init__(message)
        self.request = request


class BadResponse(BrocaError):
    """A row's response is not a finite number; no figure may be made from it."""

    remedy = "Choose another metric of the task, or another `response`."


class OutFolderTaken(BadInput):
    """The out folder holds the results of another command."""

    remedy = "Choose another `out`, or `fresh` to replace what is there."


class OutOfMemory(BrocaError):
    """Not even one row fits the memory of the device."""

    remedy = (
        "Use a smaller model or `dtype`, `device_map` auto, or a shorter task; what was "
        "measured is kept."
    )


class MissingExtra(BadInput):
    """A feature needs packages that are not installed."""

    remedy = "Install the extra that the message names."


class JournalError(BrocaError):
    """Something is wrong with a journal; nothing that it held was changed."""

    remedy = "Run `broca journal FILE --check` for details."


class JournalBusy(JournalError):
    """Another process writes to the journal."""

    remedy = "Wait for the process that the message names, or give another `journal`."


class JournalDamaged(JournalError):
    """A journal that is cut short, was altered, or is not a journal."""

    remedy = (
        "Restore the file from a copy, or move it away: the same command measures its rows anew."
    )


class JournalNotWritable(JournalError):
    """The journal cannot be written: the disk is full, or the place is read-only."""

    remedy = (
        "Make room on the disk, or give `journal` a place that can be written; then the "
        "same command."
    )


class JournalTooNew(JournalError):
    """A later version of broca wrote the journal."""

    remedy = "Use the broca that wrote it, or another `journal`."


class NotInJournal(JournalError):
    """A row that is needed from the journal alone was never measured."""

    remedy = "Give the command of the run again, which goes on where it ended."


class ExecutorFailed(BrocaError):
    """Workers died or hung too often; what they had measured is kept."""

    remedy = "Look at the workers' machines; the same command goes on where it ended."


class NotReproduced(BrocaError):
    """A repetition of a run gave another result."""

    exit_code = 1

    remedy = "Compare `versions`, `machine` and `digests` in reproduce.json with this installation."


class CannotRun(BrocaError):
    """Something that every run needs is missing or broken on this machine."""

    exit_code = 1

    remedy = "Do what `broca doctor` says, then ask it again."


class Interrupted(BrocaError):
    """The user asked for an end; what was measured is kept."""

    exit_code = 130

    remedy = "Give the command that the message names; it goes on where it ended."


EXIT_CODES = {
    0: "done",
    1: "a repetition gave another result, or broca cannot run here",
    2: "refused or failed, in one line that says what to do",
    130: "interrupted; the same command goes on",
}
"""What the command line returns."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" for the known name closest to `name`, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def first_line(error: BaseException) -> str:
    """What an error of another package says first, to be part of a line; its class if nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def all_errors(root: type[BrocaError] = BrocaError) -> list[type[BrocaError]]:
    """The tree of errors, parents before their children."""
    return [root, *(one for child in root.__subclasses__() for one in all_errors(child))]


def table() -> str:
    """The tree as a table in Markdown: `docs/errors.md` holds it."""
    lines = ["| error | cause | what to do | exit code |", "|---|---|---|---|"]
    for one in all_errors():
        cause = " ".join((one.__doc__ or "").split("\n\n")[0].split())
        lines.append(f"| {one.__name__} | {cause} | {one.remedy} | {one.exit_code} |")
    return "\n".join(lines) + "\n"
