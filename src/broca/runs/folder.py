"""The folder of a run: it records the command, so that the same command can resume the run."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from broca.errors import BadInput, BrocaError, Interrupted, NothingToLocalize, OutFolderTaken
from broca.known_paths import PACKAGED_MODELS, PREFIX, SHIPPED_MODELS, folder_of, place_of
from broca.options import GRANTS, AtlasOptions, JournalOptions, LocalizeOptions, RunOptions
from broca.options.base import Options, flat, names_of
from broca.results.base import SCHEMA
from broca.results.claim import Claim
from broca.results.files import encode, read_text, write_beside
from broca.results.reading import KINDS
from broca.results.runs import RunFolderRecord
from broca.runs.interrupts import Stopper
from broca.store.files import WriterLock
from broca.store.journal import JOURNAL

if TYPE_CHECKING:
    from broca.runs.workspace import Workspace

NAME = "reproduce.json"
FINISHED = "finished.json"

OWNERS: dict[str, type[Options]] = {"localize": LocalizeOptions, "atlas": AtlasOptions}
"""The verbs that own their folder, with the options that it records."""

STOPPING = "broca: stopping after this batch; Ctrl+C again stops at once"

MODELS = {"model", "target", "models"}
"""Options that may name a model."""
PLACES = MODELS | {"include_path", "neurons", "family", "control", "claim"}
"""Options that may name a file or a folder."""
TASKS = {"task", "tasks", "others", "same_skill", "wordings"}
"""Options that name tasks, joined by commas or in a list, each of which may be a file."""

_JOURNALS = re.compile(r"journal\.sqlite(-wal|-shm|\.lock)?")
_NAMES_FILE = re.compile(rf"\s*{PREFIX}(.+?)\s*|(.+\.py):\w+|{os.sep}.+")
_MOST_FILES = 50_000  # a record may name any folder, as large as it likes
_PACKAGES = ("broca", "torch", "transformers", "lm-eval", "datasets", "numpy", "scikit-learn")


@dataclass
class RunFolder:
    """A folder that belongs to one command.

    Attributes:
        path: The folder.
        record: Contents of `reproduce.json`.
        resumed: Whether the same command ran here before.
    """

    path: Path
    record: RunFolderRecord
    resumed: bool

    @classmethod
    def claim(
        cls, folder: Path, *, verb: str, options: Any, command: Sequence[str], fresh: bool = False
    ) -> RunFolder:
        """Claims a folder for a command, or resumes the run of the same command in it.

        Args:
            folder: The folder, which exists and can be written.
            verb: The verb, one of `OWNERS`.
            options: Its options, which may name a shared journal instead of the folder's.
            command: The command line.
            fresh: Whether to start again: removes everything that a run writes here, its journal
                too.

        Raises:
            OutFolderTaken: The folder holds another command's run.
            BadInput: Something in the folder cannot be read or removed.
        """
        if fresh:
            _clear(folder)
        journal = options.run_options.journal_options.journal
        record = RunFolderRecord(
            verb=verb, command=shlex.join(command), options=_placed(msgspec.to_builtins(options)),
            journal=JOURNAL if journal is None else str(place_of(journal).absolute()),
            versions=versions(), machine=machine(),
        )  # fmt: skip
        previous = _read(folder)
        if previous is None and (folder / "result.json").exists():
            raise OutFolderTaken(
                f"'{folder}' holds a result.json of unknown origin: choose another `out`, or "
                "`fresh` to replace it"
            )
        claimed = cls(folder, record, previous is not None)
        if previous is not None:
            before, now = cls(folder, previous, True).decisive, claimed.decisive
            for name in dict.fromkeys([*now, *before]):
                if before.get(name) != now.get(name):
                    label = "the command" if name == "verb" else f"`{name}`"
                    raise OutFolderTaken(
                        f"'{folder}' holds another run: there {label} is {before.get(name)!r}, "
                        f"here {now.get(name)!r}; choose another `out`, or `fresh` to replace it"
                    )
            record.digests = previous.digests
        claimed._write()
        return claimed

    @classmethod
    def read(cls, folder: str | Path) -> RunFolder:
        """Reads the out folder of a run, or the folder of a file in it.

        Raises:
            BadInput: The folder contains no run.
        """
        path = folder_of(folder)
        record = _read(path)
        if record is None:
            raise BadInput(
                f"'{folder}' holds no {NAME}: give the out folder of a run of this broca"
            )
        return cls(path, record, True)

    @property
    def journal(self) -> Path:
        """The run's journal."""
        return self.path / self.record.journal

    @property
    def options(self) -> Any:
        """The options of the verb whose run the folder contains."""
        return msgspec.convert(self.record.options, OWNERS[self.record.verb])

    @property
    def decisive(self) -> dict[str, Any]:
        """The options that determine the result, by name, and the verb."""
        return {"verb": self.record.verb, **flat(self.options.decisive())}

    def note(self, digests: Mapping[str, Any]) -> None:
        """Records the digests of weights, tokenizer, tasks and items.

        Raises:
            OutFolderTaken: The run in this folder has other digests.
        """
        before, now = ({**of, **of.get("tasks", {})} for of in (self.record.digests, digests))
        for name, value in now.items():
            if name not in ("run", "tasks") and before.get(name, value) != value:
                what = "weights, settings or code of the model" if name == "weights" else name
                raise OutFolderTaken(
                    f"'{self.path}' holds a run with other {what} (digest "
                    f"{str(before[name])[:12]}, now {str(value)[:12]}): they changed since; choose "
                    "another `out`, or `fresh` to replace it"
                )
        self.record.digests = dict(digests)
        self._write()

    def release(self, *, nothing: bool) -> None:
        """Gives the folder up if the run was refused before it began, or had nothing to do."""
        # another process may have begun its run here
        begun = self.record.digests or getattr(_read(self.path), "digests", None)
        if nothing or not (self.resumed or begun):
            (self.path / NAME).unlink(missing_ok=True)

    def _write(self) -> None:
        write_beside(self.path / NAME, encode(self.record))


@contextmanager
def kept_workspace(
    place: RunFolder | str | Path,
    options: RunOptions,
    *,
    goes_on: str,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Workspace]:
    """A workspace that keeps its rows; Ctrl+C ends after the batch.

    Args:
        place: The file of a journal, or a claimed folder, which has one, and which is released if
            its run is refused before it begins.
        options: Where rows are measured, and the share of them whose raw output is kept.
        goes_on: The command that resumes an interrupted run.
        say: Receives messages for the user, line by line.

    Raises:
        Interrupted: The user interrupted the run; the message names the command that resumes it.
        BrocaError: The folder, the journal or the executor is refused.
    """
    from broca.runs.workspace import Workspace  # imports torch, which reading a folder does not

    folder = place if isinstance(place, RunFolder) else None
    journal = place.journal if isinstance(place, RunFolder) else place
    if folder is not None and folder.resumed:
        say(f"going on with the run in {folder.path}")
    try:
        with (
            Stopper(lambda: say(STOPPING)) as stopper,
            Workspace(
                journal, executor=options.executor_options, stopper=stopper,
                keep_outputs=options.journal_options.keep_outputs,
                on_begin=None if folder is None else folder.note,
            ) as workspace,
        ):  # fmt: skip
            yield workspace
    except (Interrupted, KeyboardInterrupt) as error:
        raise Interrupted(
            f"interrupted; what was measured is kept in '{journal}'; this goes on: {goes_on}"
        ) from error
    except BrocaError as error:
        if folder is not None:
            folder.release(nothing=isinstance(error, NothingToLocalize))
        raise


RunT = TypeVar("RunT", bound=RunOptions)


def options_of_run(folder: str | Path, run_options: RunT, *, with_journal: bool = True) -> RunT:
    """Returns the options with which a run's model and tasks are loaded again.

    Args:
        folder: The out folder of a run of `localize`, or a file in it; a folder that `save` wrote
            has no options.
        run_options: Options of the new call. An option that differs from its default replaces the
            run's.
        with_journal: Whether the new call needs the run's journal if that was shared.

    Returns:
        The run's source, task and model options; all other options as given.

    Raises:
        BadInput: The run was made with a permission that is not given again; see `with_recorded`.
    """
    record = _read(folder_of(folder))
    if record is None:
        return run_options
    recorded: RunOptions = msgspec.convert(record.options, OWNERS[record.verb]).run_options  # type: ignore[attr-defined]
    groups = {
        name: with_recorded(
            getattr(run_options, name), getattr(recorded, name), names_of(type(run_options))
        )
        for name in ("source_options", "task_options", "model_options")
    }
    if with_journal and record.journal != JOURNAL:
        with_recorded(run_options.journal_options, JournalOptions(journal=record.journal))
    return replace(run_options, **groups)


OptionsT = TypeVar("OptionsT", bound=Options)


def with_recorded(
    options: OptionsT, recorded: Options, names: Collection[str] | None = None
) -> OptionsT:
    """Replaces the fields of an option class that have their defaults by their recorded values.

    This is the one place where recorded options take effect, and they grant nothing.

    Args:
        options: The options of a call.
        recorded: Options that a file records.
        names: Names of the options that the call can have; by default those of the class.

    Raises:
        BadInput: The recorded options contain one of `GRANTS`, which the call can have and lacks.
    """
    defaults, values = type(options)(), {}
    for name in {item.name for item in fields(options)} & {item.name for item in fields(recorded)}:
        value = getattr(recorded, name)
        if getattr(options, name) != getattr(defaults, name):
            continue
        if name not in GRANTS or value in GRANTS[name]:
            values[name] = value
        elif name in (names_of(type(options)) if names is None else names):
            raise BadInput(
                f"the run was made with `{name}` {value!r}, which no folder grants: look at it, "
                f"and give `{name}` again if you trust it"
            )
    return replace(options, **values)


class _FinishedVerb(msgspec.Struct):
    """A command that has finished in a folder, and its files with their stamps."""

    options: dict[str, Any]
    versions: dict[str, str]
    files: list[str]
    stamps: dict[str, list[int]]

    @classmethod
    def of(cls, folder: Path, options: Options, files: Sequence[Path]) -> _FinishedVerb:
        names = [os.path.relpath(file, folder) for file in files]
        stamps = _stamps(folder, options, files[0])
        return cls(_placed(options.decisive(), PLACES | TASKS), versions(), names, stamps)


def note_finished(folder: Path, verb: str, options: Options, files: Sequence[Path]) -> None:
    """Records that a command in a folder has finished, with the files that it read and wrote."""
    entries = _finished(folder) | {verb: _FinishedVerb.of(folder, options, files)}
    write_beside(folder / FINISHED, encode(entries))


def finished_files(folder: Path, verb: str, options: Options) -> tuple[Path, ...]:
    """Returns the files that the same command wrote if nothing that it read has changed, else none.

    Files are compared by size and time: those that the options name, those that a run among them
    names, those of broca, and the result. Models and data of the hub count as unchanged, and
    so do files beyond the first 50,000.
    """
    entry = _finished(folder).get(verb)
    files = tuple(folder / name for name in entry.files) if entry else ()
    if not files or not all(file.is_file() for file in files):
        return ()
    now = _FinishedVerb.of(folder, options, files)
    return files if encode(now) == encode(entry) else ()


def _finished(folder: Path) -> dict[str, _FinishedVerb]:
    try:
        content = read_text(folder / FINISHED)
        return msgspec.json.decode(content, type=dict[str, _FinishedVerb])
    except (BadInput, msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def _stamps(folder: Path, options: Options, result: Path) -> dict[str, list[int]]:
    """Returns size and time of the files that options and runs name, of broca's, of the result."""
    places = [result, Path(__file__).parent.parent]
    named = [*_named(_placed(options.decisive(), PLACES | TASKS))]
    for name in [*named]:
        with suppress(BadInput):  # a file of that name that is not broca's
            if run := _read(folder_of(name)):
                named += _named(_placed(run.options, PLACES | TASKS))
    for place in map(Path, named):
        results = [place / kind.FILE for kind in KINDS[:3] if os.path.isfile(place / kind.FILE)]
        places += results or [place]
    stamps = {}
    for file in sorted({*islice(_files(places), _MOST_FILES)}):
        with suppress(OSError):  # what may not be read is left out
            own = "__pycache__" not in file.parts and not _JOURNALS.match(file.name)
            if own and file.is_file():
                stamps[os.path.relpath(file, folder)] = file.stat()
    written = {FINISHED, NAME, *(kind.PAGE for kind in KINDS)}
    return {
        name: [stat.st_size, stat.st_mtime_ns]
        for name, stat in stamps.items()
        if Path(name).name not in written
    }


def _files(places: Iterable[Path]) -> Iterator[Path]:
    """Yields places, and every file under those that are folders."""
    for place in places:
        yield place
        for folder, _, names in os.walk(place):  # which passes over what may not be read
            yield from (Path(folder, name) for name in names)


def _named(value: Any, option: str = "") -> Iterator[str]:
    """Yields every file or folder that plain options name, by those options that name any."""
    if isinstance(value, str) and option in PLACES | TASKS | {"reference"}:
        named = map(_NAMES_FILE.fullmatch, {value, *value.split(",")})
        places = (os.path.expanduser(match[match.lastindex or 0]) for match in named if match)
        yield from (os.path.abspath(place) for place in places if os.path.exists(place))
    elif isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else zip(repeat(option), value):
            yield from _named(inner, name)


def _placed(options: Any, names: Collection[str] = (*PLACES, "task")) -> Any:
    """Returns plain options in which files and folders under some names have absolute paths."""
    if not isinstance(options, dict):
        return options
    return {
        name: _absolute(value, name) if name in names else _placed(value, names)
        for name, value in options.items()
    }


def _absolute(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple):
        return [_absolute(word, name) for word in value]
    if not isinstance(value, str) or not value:
        return value
    if name in MODELS and value in (*SHIPPED_MODELS, *PACKAGED_MODELS):
        return value
    task = name in TASKS
    place = os.path.expanduser(value.strip())
    if os.path.isfile(place) if task else os.path.exists(place):
        return os.path.abspath(place)
    words = value.split(",") if task else []
    return ",".join(_absolute(word, name) for word in words) if words[1:] else value


def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    numbers = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            numbers[package] = "not installed"
    return numbers


def machine() -> dict[str, Any]:
    """The properties of the machine that may affect results."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "encoding": sys.getdefaultencoding(),
    }


def _read(folder: Path) -> RunFolderRecord | None:
    """Returns the contents of `reproduce.json`; None if it does not exist.

    Raises:
        BadInput: The file was not written by this broca.
    """
    file = folder / NAME
    if not file.is_file():
        return None
    try:
        record = msgspec.json.decode(read_text(file), type=RunFolderRecord)
        if record.schema != SCHEMA or record.verb not in OWNERS:
            raise ValueError(f"schema {record.schema}, verb '{record.verb}'")
        msgspec.convert(record.options, OWNERS[record.verb])
    except (msgspec.MsgspecError, ValueError, BadInput, RecursionError) as error:
        raise BadInput(
            f"'{file}' cannot be read ({type(error).__name__}: {error}): choose another `out`, or "
            "`fresh` to replace it"
        ) from error
    return record


def _clear(folder: Path) -> None:
    """Removes everything that a run writes into its folder; other files stay.

    Raises:
        JournalBusy: Another process writes to the folder's journal.
        BadInput: Something cannot be removed.
    """
    journal = folder / JOURNAL
    if journal.exists():
        WriterLock(str(journal)).close()
    written = {NAME, FINISHED, Claim.FILE}
    written |= {name for kind in KINDS if kind.PAGE for name in (kind.FILE, kind.PAGE)}
    try:
        for path in folder.iterdir():
            name = path.name.removesuffix(".part")
            if path.is_file() and (name in written or _JOURNALS.fullmatch(name)):
                path.unlink()
    except OSError as error:
        raise BadInput(
            f"'{folder}' cannot be cleared ({error.strerror}): choose another `out`"
        ) from error
