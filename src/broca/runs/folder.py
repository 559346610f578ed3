"""The folder of a run: it records the command, so that the same command can resume the run."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.errors import BadInput, BrocaError, Interrupted, OutFolderTaken
from broca.journal.files import WriterLock
from broca.options import ExecutorOptions, JournalOptions, RunOptions, TaskOptions
from broca.results.files import write_beside
from broca.results.reading import KINDS
from broca.runs.finish_stamps import NAME as FINISHED
from broca.runs.finish_stamps import as_read, stamps_of, unchanged, versions
from broca.runs.interrupts import Stopper

if TYPE_CHECKING:
    from broca.runs.workspace import Workspace

SCHEMA = 1
NAME = "reproduce.json"
JOURNAL = "journal.sqlite"
SCRATCH = "journal.rerun.sqlite"
"""Rows of a repetition from scratch, until it ends."""

_JOURNALS = re.compile(r"journal(\.old\d+|\.rerun)?\.sqlite(-wal|-shm|\.lock)?")


@dataclass
class RunFolder:
    """A folder that belongs to one command.

    Attributes:
        path: The folder.
        record: Contents of `reproduce.json`.
        resumed: Whether the same command ran here before.
    """

    path: Path
    record: dict[str, Any] = field(repr=False)
    resumed: bool

    @classmethod
    def claim(
        cls,
        folder: Path,
        *,
        verb: str,
        options: Mapping[str, Any],
        how: Mapping[str, Any],
        command: Sequence[str],
        journal: str | None = None,
        fresh: bool = False,
        resume: bool = False,
    ) -> RunFolder:
        """Claims a folder for a command, or resumes the run of the same command in it.

        Args:
            folder: The folder, which exists and can be written.
            verb: The command's first word.
            options: The options that determine the result: another value is another run.
            how: The options that determine only how the result is computed.
            command: The command line.
            journal: A shared journal; the folder's journal if None.
            fresh: Whether to start again: removes everything that a run writes here, its journal
                too.
            resume: Whether to refuse a folder that contains no run.

        Raises:
            OutFolderTaken: The folder holds another command's run.
            BadInput: `resume` is set and the folder contains no run, or both switches are set.
        """
        if fresh and resume:
            raise BadInput("`fresh` and `resume` exclude each other: give one of them")
        options = as_read({"verb": verb, **options})
        previous = None if fresh else _read(folder)
        if fresh:
            _clear(folder)
        elif previous is None and resume:
            raise BadInput(f"`resume`: '{folder}' holds no run to resume; leave `resume` out")
        elif previous is None and (folder / "result.json").exists():
            raise OutFolderTaken(
                f"'{folder}' holds a result.json of unknown origin: choose another `out`, or "
                "`fresh` to replace it"
            )
        elif previous is not None:
            _require_same(folder, previous["options"], options)
        record = {
            "schema": SCHEMA,
            "command": shlex.join(command),
            "options": options,
            "how": dict(how),
            "journal": JOURNAL if journal is None else str(Path(journal).absolute()),
            "versions": versions(),
            "machine": machine(),
            "digests": {} if previous is None else previous["digests"],
            "finished": {},
        }
        claimed = cls(folder, record, previous is not None)
        claimed._write()
        return claimed

    @classmethod
    def read(cls, folder: str | Path) -> RunFolder:
        """Reads the out folder of a run.

        Raises:
            BadInput: The folder contains no run.
        """
        record = _read(Path(folder))
        if record is None:
            raise BadInput(
                f"'{folder}' holds no {NAME}: give the out folder of a run of this broca"
            )
        return cls(Path(folder), record, True)

    @property
    def journal(self) -> Path:
        """The run's journal."""
        return self.path / str(self.record["journal"])

    @property
    def arguments(self) -> dict[str, Any]:
        """The keywords of the verb whose run the folder contains; see `arguments_of`."""
        return arguments_of(self.record)

    @contextmanager
    def scratch(self, options: JournalOptions) -> Iterator[JournalOptions]:
        """A journal that is not the run's, to measure its rows again.

        Without a given journal it is a file of the folder, which is removed at the end; an
        interrupted repetition leaves it, and the next one goes on in it.

        Raises:
            BadInput: The given journal is the run's.
        """
        journal: Any = options.journal
        if journal is not None:
            path = getattr(journal, "path", journal)  # a workspace has a path, or none in memory
            if path is not None and Path(path).absolute() == self.journal.absolute():
                raise BadInput(
                    f"`journal` '{path}' holds the rows of this run, which are to be measured "
                    "again: name another file"
                )
            yield options
            return
        path = self.path / SCRATCH
        yield replace(options, journal=path)
        for file in self.path.glob(f"{SCRATCH}*"):
            file.unlink()

    def note(self, digests: Mapping[str, Any]) -> None:
        """Records the digests of weights, tokenizer, tasks and items.

        Raises:
            OutFolderTaken: The run in this folder has other digests.
        """
        self.record["finished"] = {}
        before = self.record["digests"]
        for name, value in digests.items():
            if name != "run" and before.get(name, value) != value:
                raise OutFolderTaken(
                    f"'{self.path}' holds a run with other {name} (digest {_short(before[name])}, "
                    f"now {_short(value)}): they changed since; choose another `out`, or `fresh` "
                    "to replace it"
                )
        self.record["digests"] = dict(digests)
        self._write()

    def finish(self, sources: Sequence[Path] | None, written: Sequence[Path]) -> None:
        """Records that the run has finished, so that the same command need not run again.

        Args:
            sources: The files that the result was computed from; None if they are unknown.
            written: The files of the result.
        """
        if sources is None:
            return
        self.record["finished"] = stamps_of(self.path, sources, written)
        self._write()

    @classmethod
    def is_finished(cls, folder: Path, *, verb: str, options: Mapping[str, Any]) -> bool:
        """Whether a folder contains the result of the same command, and nothing has changed since.

        Only the record, and the sizes and times of the files that it names, are read.
        """
        try:
            record = _read(folder)
        except BadInput:
            return False
        options = as_read({"verb": verb, **options})
        if record is None or record["options"] != options or record["versions"] != versions():
            return False
        return unchanged(folder, record.get("finished") or {})

    def release(self) -> None:
        """Removes the files of a run that was refused before it began."""
        if not self.resumed and not self.record["digests"]:
            (self.path / NAME).unlink(missing_ok=True)

    def _write(self) -> None:
        text = json.dumps(self.record, indent=2, ensure_ascii=False) + "\n"
        write_beside(self.path / NAME, text)


@contextmanager
def folder_workspace(
    folder: RunFolder,
    *,
    goes_on: str,
    executor: ExecutorOptions | None = None,
    keep_outputs: float = 0.0,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Workspace]:
    """A workspace that keeps its rows in a claimed folder; Ctrl+C ends after the batch.

    Args:
        folder: The folder; it is released if its run is refused before it begins.
        goes_on: The command that resumes an interrupted run.
        executor: Where rows are measured.
        keep_outputs: Share of the rows whose raw output is kept.
        say: Receives messages for the user, line by line.

    Raises:
        Interrupted: The user interrupted the run; the message names the command that resumes it.
        BrocaError: The folder, the journal or the executor is refused.
    """
    if folder.resumed:
        say(f"going on with the run in {folder.path}")
    try:
        with journal_workspace(
            folder.journal,
            goes_on=goes_on,
            executor=executor,
            keep_outputs=keep_outputs,
            on_begin=folder.note,
            say=say,
        ) as workspace:
            yield workspace
    except Interrupted:
        raise
    except BrocaError:
        folder.release()
        raise


@contextmanager
def journal_workspace(
    journal: str | Path,
    *,
    goes_on: str,
    executor: ExecutorOptions | None = None,
    keep_outputs: float = 0.0,
    on_begin: Callable[[dict[str, Any]], None] = lambda digests: None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Workspace]:
    """A workspace that keeps its rows in a journal; Ctrl+C ends after the batch.

    Args:
        journal: The journal's file.
        goes_on: The command that resumes an interrupted run.
        executor: Where rows are measured.
        keep_outputs: Share of the rows whose raw output is kept.
        on_begin: Receives the digests of every run, once they are known.
        say: Receives messages for the user, line by line.

    Raises:
        Interrupted: The user interrupted the run; the message names the command that resumes it.
    """
    # imports torch, which reading a folder does not need
    from broca.runs.workspace import Workspace

    def announce() -> None:
        say("broca: stopping after this batch; Ctrl+C again stops at once")

    with Stopper(announce) as stopper:
        try:
            with Workspace(
                journal,
                executor=executor,
                keep_outputs=keep_outputs,
                stopper=stopper,
                on_begin=on_begin,
            ) as workspace:
                yield workspace
        except (Interrupted, KeyboardInterrupt) as error:
            raise Interrupted(
                f"interrupted; what was measured is kept in '{journal}'; this goes on: {goes_on}"
            ) from error


def arguments_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keywords of a verb that `reproduce.json` records.

    Args:
        record: Contains `options` and `how`; a run of an older version has fewer options.

    Raises:
        BadInput: An option of a task has a value that does not exist.
    """
    decisive = {name: value for name, value in record["options"].items() if name != "verb"}
    options = TaskOptions(**decisive.pop("task_options", {}))
    return {**decisive, **record["how"], "task_options": options}


def options_of_run(folder: str | Path, run_options: RunOptions) -> RunOptions:
    """Returns the options with which a run's model and tasks are loaded again.

    Args:
        folder: The out folder of a run of `localize`; a folder that `save` wrote has no options.
        run_options: Options of the new call. An option that differs from its default replaces the
            run's.

    Returns:
        The run's source, task and model options, and its journal if it was shared; all other
        options as given.
    """
    record = _read(Path(folder))
    if record is None:
        return run_options
    arguments = arguments_of(record)
    groups = {
        name: with_recorded(getattr(run_options, name), arguments)
        for name in ("source_options", "model_options")
    }
    task_options = {**asdict(arguments["task_options"]), **run_options.task_options.to_dict()}
    journal = run_options.journal_options
    if journal.journal is None and record["journal"] != JOURNAL:
        journal = replace(journal, journal=record["journal"])
    return replace(
        run_options, **groups, task_options=TaskOptions(**task_options), journal_options=journal
    )


def with_recorded(options: Any, recorded: Mapping[str, Any]) -> Any:
    """Replaces the fields of an option class that have their defaults by their recorded values."""
    defaults = type(options)()
    replacements = {
        field.name: recorded[field.name]
        for field in fields(options)
        if field.name in recorded and getattr(options, field.name) == getattr(defaults, field.name)
    }
    return replace(options, **replacements)


def machine() -> dict[str, Any]:
    """The properties of the machine that may affect results."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "encoding": sys.getdefaultencoding(),
    }


def _read(folder: Path) -> dict[str, Any] | None:
    """Returns the contents of `reproduce.json`; None if it does not exist.

    Raises:
        BadInput: The file was not written by broca.
    """
    file = folder / NAME
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA:
            raise BadInput(
                f"'{file}' has schema {record['schema']}, this broca reads {SCHEMA}: use the broca "
                "that wrote it, or another `out`"
            )
        if "asked" in record:  # its name before 0.2.0
            record["options"] = record.pop("asked")
        kinds = (("options", dict), ("how", dict), ("digests", dict), ("journal", str))
        for name, kind in kinds:
            if not isinstance(record[name], kind):
                raise TypeError(f"{name} is no {kind.__name__}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(
            f"'{file}' cannot be read ({type(error).__name__}: {error}): choose another `out`, or "
            "`fresh` to replace it"
        ) from error
    return dict(record)


def _require_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name in dict.fromkeys([*now, *before]):
        if not _equal(before.get(name), now.get(name)):
            label = "the command" if name == "verb" else f"`{name}`"
            raise OutFolderTaken(
                f"'{folder}' holds another run: there {label} is {before.get(name)!r}, here "
                f"{now.get(name)!r}; choose another `out`, or `fresh` to replace it"
            )


def _equal(before: Any, now: Any) -> bool:
    """Whether two values are equal; an option that an older version lacks has its default."""
    if isinstance(before, dict) and isinstance(now, dict):
        return all(_equal(before.get(name), now.get(name)) for name in {*before, *now})
    return before == now or (before is None and now is False)


def _clear(folder: Path) -> None:
    """Removes everything that a run writes into its folder; other files stay.

    Raises:
        JournalBusy: Another process writes to the folder's journal.
        BadInput: Something cannot be removed.
    """
    journal = folder / JOURNAL
    if journal.exists():
        WriterLock(str(journal)).close()
    written = {NAME, FINISHED, *(name for kind in KINDS for name in (kind.FILE, kind.PAGE))}
    try:
        for path in folder.iterdir():
            name = path.name.removesuffix(".part")
            if path.is_file() and (name in written or _JOURNALS.fullmatch(name)):
                path.unlink()
    except OSError as error:
        raise BadInput(
            f"'{folder}' cannot be cleared ({error.strerror}): choose another `out`"
        ) from error


def _short(digest: Any) -> str:
    return str(digest)[:12]
