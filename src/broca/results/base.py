"""The base of all results: their origin, and how they are saved, shown and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

from broca.errors import BadInput, nearest
from broca.results import codec
from broca.results.tabular import tables

if TYPE_CHECKING:
    import pandas

SCHEMA = 2
"""Version of the layout of all files; `results.upgrades` reads older ones."""


@cache
def version_of_broca() -> str:
    """Returns the version of broca that results record."""
    return version("broca")


@dataclass(frozen=True)
class ModelInfo:
    """The model that was examined.

    Attributes:
        name: Name that the user gave.
        fingerprint: Digest of its weights.
        architecture: Class of the model in transformers; empty in older files.
        layers: Number of decoder layers; None in older files, as for all fields that follow.
        heads: Number of query heads of an attention layer.
        kv_heads: Number of key/value heads of an attention layer.
        dtype: Number format of the weights; empty in older files.
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
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
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
class AblationInfo:
    """How components were ablated.

    Attributes:
        kind: Kind of ablation, such as `zero` or `mean`.
        scale: Gate of the components; 0 ablates.
    """

    kind: str
    scale: float


ZEROED = AblationInfo("zero", 0.0)
"""Components whose outputs are zero; with another scale, nothing replaces the lost share."""


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
    VERB: ClassVar[str] = ""
    """The command that writes it."""

    broca: str = field(default_factory=version_of_broca)
    schema: int = SCHEMA
    kind: str = ""

    def __init_subclass__(cls, *, verb: str, file: str = "", page: str = "") -> None:
        super().__init_subclass__()
        cls.VERB, cls.FILE, cls.PAGE = verb, file, page

    @abstractmethod
    def summary(self) -> tuple[str, ...]:
        """Returns at most five lines that begin with the verdict in words."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Returns the lines of `to_frame`, each a mapping from columns to values."""

    @overload
    def to_frame(
        self, library: Literal["pandas"] = "pandas", *, table: str | None = None
    ) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"], *, table: str | None = None) -> Any: ...
    def to_frame(self, library: str = "pandas", *, table: str | None = None) -> Any:
        """Returns the result as a table; docs/results.md describes its lines.

        Args:
            library: `pandas`, or `polars` if it is installed.
            table: Name of another table of the result, such as `controls`.

        Raises:
            BadInput: The library is unknown, polars is not installed, or the result has no such
                table.
        """
        lines = self.records() if table is None else self._lines(table)
        if library == "pandas":
            import pandas

            return pandas.DataFrame(lines)
        if library != "polars":
            raise BadInput(
                f"`library` '{library}' is unknown{nearest(library, ('pandas', 'polars'))}: use "
                "pandas or polars"
            )
        try:
            polars = import_module("polars")
        except ImportError as error:
            raise BadInput("polars is not installed: `pip install polars`") from error
        return polars.DataFrame(lines, infer_schema_length=None)

    @property
    def tables(self) -> tuple[str, ...]:
        """Returns the names of the tables of `to_frame` that have lines."""
        return tuple(tables(self))

    def _lines(self, table: str) -> list[dict[str, Any]]:
        by_name = tables(self)
        if table not in by_name:
            raise BadInput(
                f"{self.described()} has no table '{table}'{nearest(table, by_name)}; use "
                f"one of {', '.join(by_name) or 'none'}"
            )
        return by_name[table]

    def plot(self) -> Any:
        """Draws the main figure.

        Raises:
            BadInput: This kind of result has no figure.
        """
        return _reports().plot(self)

    def ablated(self, model: Any, scale: float | None = None) -> AbstractContextManager[Any]:
        """Ablates the selected components in every forward pass and `generate` of a model.

        Args:
            model: What `broca.load` returned, or a causal language model of transformers.
            scale: Factor of their outputs; by default the scale of the result, else 0.

        Returns:
            A context manager; see `GatedModel.ablated`.

        Raises:
            BadInput: Nothing is selected, or the components were not ablated to zero or scaled.
            BrocaError: The model lacks a component.
        """
        if not getattr(self, "selected", ()):
            raise BadInput(f"this {self.kind} selects no components: there is nothing to ablate")
        ablation = getattr(self, "ablation", None) or ZEROED
        engine = import_module("broca.engine")
        if scale is None and engine.Ablation(ablation.kind).needs_donors:
            raise BadInput(
                f"the outputs were replaced by {ablation.kind} ablation, which needs the run's "
                "items: give a `scale`, such as 0"
            )
        gated = import_module("broca.models").as_gated(model)
        context: AbstractContextManager[Any] = gated.ablated(
            self, ablation.scale if scale is None else scale
        )
        return context

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the result and its page into a folder, which is created.

        Returns:
            The files; the first is the result.

        Raises:
            BadInput: The folder cannot be written; its files are unchanged.
        """
        files: tuple[Path, ...] = _reports().write(self, folder)
        return files

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads the result from its file or from a folder.

        Raises:
            BadInput: The file does not exist, or contains something else.
        """
        path = Path(path)
        file = path / cls.FILE if path.is_dir() and cls.FILE else path
        if not file.is_file():
            raise BadInput(f"'{file}' does not exist: run `{cls.VERB}` first and let it finish")
        text = codec.read_text(file)
        try:
            return codec.decode(cls, text)
        except BadInput as error:
            raise BadInput(str(error).replace("this is", f"'{file}' is", 1)) from error

    @classmethod
    def described(cls) -> str:
        """Returns the kind with its article, such as `an atlas`."""
        return f"{'an' if cls.kind[0] in 'aeiou' else 'a'} {cls.kind}"

    @classmethod
    def where(cls) -> str:
        """Returns the place of results of this kind, for messages."""
        return f"the {cls.FILE} of an out folder" if cls.FILE else f"a file of `{cls.VERB}`"

    def __repr__(self) -> str:
        return "\n".join(self.summary())

    def _repr_html_(self) -> str:
        picture: str = _reports().picture(self)
        return picture


def joined_names(names: tuple[str, ...], *, most: int = 8) -> str:
    """Joins names by commas; of many names only the first."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _reports() -> Any:
    """The package `reports`, which depends on this one and is therefore loaded on first use."""
    return import_module("broca.reports")
