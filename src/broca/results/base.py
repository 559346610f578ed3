"""The base of all results: their origin, and how they are saved, shown and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from html import escape
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, dataclass_transform

import msgspec

from broca.errors import BadInput, BrocaError, OutFolderTaken, first_line, require_known
from broca.known_paths import place_of
from broca.results import files

if TYPE_CHECKING:
    import pandas

    from broca.results.pages.charts import Figure
    from broca.results.pages.tables import Table

Lines = list[dict[str, Any]]

SCHEMA = 2
"""Version of the layout of all files."""
_Size = Annotated[int, msgspec.Meta(ge=0, le=10**5)]
"""A number that no model exceeds, so that a page of another's file ends."""


_SENTENCES = 5
"""Maximum number of sentences of a summary."""

_NAMES = 8
"""Number of names that a sentence lists."""

_LINES = 12
"""Number of rows that a notebook shows; `to_frame()` has all."""


@dataclass(frozen=True)
class ModelInfo:
    """The model that was examined.

    Attributes:
        name: Name that the user gave.
        fingerprint: Digest of its weights.
        architecture: Class of the model in transformers.
        layers: Number of decoder layers.
        heads: Number of query heads of an attention layer.
        kv_heads: Number of key/value heads of an attention layer.
        dtype: Number format of the weights.
        neurons: Number of feed-forward neurons; None in results that do not concern neurons.
        parameters: Number of parameters; None in results that do not concern neurons.
        revision: Commit on the hub; None for a model that is not from the hub.
        remote_code: Whether its class comes from its own Python files instead of transformers.
        adapter: The PEFT adapter, its base model, and whether it was merged; empty without an
            adapter.
    """

    name: str
    fingerprint: str
    architecture: str = ""
    layers: _Size | None = None
    heads: _Size | None = None
    kv_heads: _Size | None = None
    dtype: str = ""
    neurons: int | None = None
    parameters: int | None = None
    revision: str | None = None
    remote_code: bool = False
    adapter: str = ""

    @property
    def short_name(self) -> str:
        """The name in headlines; for a folder, only its last part."""
        is_folder = self.name.startswith(("/", ".", "~"))
        return self.name.rstrip("/").rpartition("/")[2] if is_folder else self.name


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval.

    Attributes:
        value: The estimate.
        low: Lower end.
        high: Upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AblationInfo:
    """How components were ablated.

    Attributes:
        kind: Kind of ablation, such as `zero` or `mean`.
        scale: Gate of the components; 0 ablates.
    """

    kind: str
    scale: float

    @property
    def described(self) -> str:
        """The ablation in words."""
        return f"{self.kind} ablation" + f", gate {self.scale:g}" * (self.scale != 0)


ZEROED = AblationInfo("zero", 0.0)
"""Components whose outputs are zero; with another scale, nothing replaces the lost share."""


def _shown(show: Callable[..., Any]) -> Callable[..., Any]:
    """Turns any exception of showing a result into one line."""

    @wraps(show)
    def shown(result: Result, *arguments: Any, **options: Any) -> Any:
        try:
            made = show(result, *arguments, **options)
            return iter([*made]) if isinstance(made, Iterator) else made
        except BrocaError:
            raise
        except Exception as error:
            raise BadInput(
                f"{result.described()} cannot be shown ({type(error).__name__}: "
                f"{first_line(error)}): its file was edited or damaged, or broca has a fault here"
            ) from error

    return shown


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True, repr=False)
class Result(ABC):
    """The result that a verb returns and writes.

    Attributes:
        broca: Version of broca.
        schema: Version of the layout of its file.
        kind: Kind of the result.
    """

    FILE: ClassVar[str] = ""
    """Name of its file in an out folder; empty if the name depends on the result."""
    PAGE: ClassVar[str] = ""
    """Name of its page there; empty if it has no page."""
    ROWS: ClassVar[str] = ""
    """The list in its file whose entries are the lines of `to_frame`."""
    VERB: ClassVar[str] = ""
    """The command that writes it."""
    CLASSES: ClassVar[dict[str, type[Result]]] = {}
    """The class of every kind that is imported."""

    broca: str = field(default_factory=lambda: version("broca"))
    schema: int = SCHEMA
    kind: str = ""

    def __init_subclass__(
        cls, *, verb: str, file: str = "", page: str = "", rows: str = "", kw_only: bool = True
    ) -> None:
        """Makes every kind of result a frozen data class."""
        super().__init_subclass__()
        cls.VERB, cls.FILE, cls.PAGE, cls.ROWS = verb, file, page, rows
        Result.CLASSES[cls.kind] = cls
        for name in {"terminal", "records", "page", "figures"} & vars(cls).keys():
            setattr(cls, name, _shown(getattr(cls, name)))
        dataclass(frozen=True, kw_only=kw_only, repr=False)(cls)

    @abstractmethod
    def terminal(self) -> Iterable[str | Table]:
        """Returns the sentences and tables that a terminal shows; the first has the verdict."""

    def summary(self) -> tuple[str, ...]:
        """Returns the first sentences of `terminal`, at most five."""
        sentences = (part for part in self.terminal() if isinstance(part, str))
        return tuple(islice(sentences, _SENTENCES))

    def records(self) -> list[dict[str, Any]]:
        """Returns the lines of `to_frame`, each a mapping from columns to values."""
        return tables(files.plain(self)).get(self.ROWS, [])

    def to_frame(self, table: str | None = None) -> pandas.DataFrame:
        """Returns the result as a table; docs/results.md describes its lines.

        Args:
            table: Name of another table of the result, such as `controls`.

        Raises:
            BadInput: The result has no such table.
        """
        import pandas

        if table is None:
            return pandas.DataFrame(self.records())
        by_name = tables(files.plain(self))
        require_known("`table`", table, by_name, error=BadInput)
        return pandas.DataFrame(by_name[table])

    @property
    def tables(self) -> tuple[str, ...]:
        """Returns the names of the tables of `to_frame` that have lines."""
        return tuple(tables(files.plain(self)))

    def figures(self) -> tuple[Figure, ...]:
        """Returns all figures, the main figure first; some kinds have none."""
        return ()

    def plot(self) -> Figure:
        """Returns the main figure.

        Raises:
            BadInput: This kind of result has no figure.
        """
        if not (figures := self.figures()):
            raise BadInput(f"{self.described()} has no figure: use `to_frame()`")
        return figures[0]

    def page(self) -> str:
        """Renders the result as a self-contained HTML page, in which all text is escaped.

        Raises:
            BadInput: This kind of result has no page.
        """
        raise BadInput(f"{self.described()} has no page: use `to_frame()`")

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns the pages that the result changes in its folder, by name; its own is the last."""
        return {self.PAGE: self.page()} if self.PAGE else {}

    def concerns(self: Any, run: Any) -> bool:
        """Whether it has the weights, the selection and, if it names one, the task of a run."""
        return bool(
            self.model.fingerprint == run.model.fingerprint
            and set(self.selected) == set(run.selected)
            and getattr(self, "task", run.task) == run.task
        )

    def run_in(self, folder: Path) -> Any:
        """Returns the localization in a folder if this result concerns it, else None."""
        try:
            run = Result.CLASSES["localization"].read(folder)
        except BadInput:  # there is no file, or another kind of file
            return None
        return run if self.concerns(run) else None

    def report_in(self, folder: Path) -> dict[str, str]:
        """Returns the report of the run in a folder, by name, if this result concerns the run."""
        run = self.run_in(folder)
        return {} if run is None else run.pages(folder)

    @property
    def file_name(self) -> str:
        """Name of its file in an out folder."""
        return self.FILE

    def save(self, folder: str | Path, *, replace: bool = False) -> tuple[Path, ...]:
        """Writes the result and its page into a folder, by temporary files that are renamed.

        The page of a verification or a stress test of a run's selection, in the folder of the run,
        is the report of the run, which is written again.

        Args:
            folder: The folder.
            replace: Whether to replace the result of a run of the command line.

        Returns:
            The files: the result first, its page last.

        Raises:
            BadInput: The folder cannot be written.
            OutFolderTaken: It is that of such a run, whose result this is not to replace.
        """
        place = files.check_out_folder(folder)
        is_run = (place / "reproduce.json").exists() and self.kind in ("localization", "atlas")
        if is_run and not replace:
            raise OutFolderTaken(
                f"'{folder}' holds a run of the command line: choose another, or give `replace`"
            )
        written = _written(place, {self.file_name: files.encode(self)})
        return written + _written(place, self.pages(place))

    def save_page(self, folder: str | Path, home: Path | None = None) -> tuple[Path, ...]:
        """Writes only the page.

        Args:
            folder: Folder for the page.
            home: Folder of the result, whose later results the page shows too; the same by default.

        Raises:
            BadInput: This kind of result has no page, or the folder cannot be written.
        """
        place = files.check_out_folder(folder)
        return _written(place, self.pages(home or place) or {"": self.page()})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads the result from its file or from a folder.

        Raises:
            BadInput: The file does not exist, or contains something else.
        """
        path = place_of(path)
        file = path / cls.FILE if path.is_dir() and cls.FILE else path
        if not file.is_file():
            hints = {
                "result.json": ", or name `heads`", "claim.json": ", as `broca localize --claim`"
            }  # fmt: skip
            told = hints.get(cls.FILE, "")
            raise BadInput(
                f"'{file}' does not exist: run `{cls.VERB}` first and let it finish{told}"
            )
        text = files.read_text(file)
        try:
            return files.decode(cls, text)
        except BadInput as error:
            raise BadInput(str(error).replace("this is", f"'{file}' is", 1)) from error

    @classmethod
    def described(cls) -> str:
        """Returns the kind with its article, such as `an atlas`."""
        return f"{'an' if cls.kind[0] in 'aeiou' else 'a'} {cls.kind}"

    def __repr__(self) -> str:
        return "\n".join(self.summary())

    def _repr_html_(self) -> str:
        first, *others = (escape(line) for line in self.summary())
        if figures := self.figures():
            body = figures[0].svg()
        else:
            body = self.to_frame().head(_LINES).to_html(index=False, na_rep="", border=0)
        return f"<div><p><b>{first}</b><br>{'<br>'.join(others)}</p>{body}</div>"


def tables(record: Mapping[str, Any]) -> dict[str, Lines]:
    """Returns every list of records within plain data, at any depth, by its dotted name.

    A row has the values of a record; those of a record within it have dotted names, and the ends
    `ci` are `low` and `high`. Lists within rows are another table, whose rows begin with the first
    column of the containing row.
    """
    by_name: dict[str, Lines] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            by_name |= {f"{name}.{inner}": lines for inner, lines in tables(value).items()}
        elif _are_records(value):
            by_name |= tables_of(name, value)
    return by_name


def tables_of(name: str, records: Sequence[dict[str, Any]]) -> dict[str, Lines]:
    """Returns records as a table with a name, and the lists within them as further tables."""
    by_name: dict[str, Lines] = {name: [_line(record) for record in records]}
    for record, line in zip(records, by_name[name], strict=True):
        first = {f"{name}.{column}": value for column, value in list(line.items())[:1]}
        for inner, lines in tables(record).items():
            by_name.setdefault(f"{name}.{inner}", []).extend(first | row for row in lines)
    return by_name


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _line(record: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            line |= {f"{name}.{inner}": cell for inner, cell in _line(value).items()}
        elif name == "ci":
            line["low"], line["high"] = value or (None, None)
        elif not _are_records(value):
            line[name] = value
    return line


def joined_names(names: tuple[str, ...]) -> str:
    """Joins names by commas; of many names only the first."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _written(folder: Path, texts: dict[str, str]) -> tuple[Path, ...]:
    for name, text in texts.items():
        files.write_beside(folder / name, text)
    return tuple(folder / name for name in texts)
