"""What all results have in common: where they come from, how they are saved, shown and read."""

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
    """The version that results name."""
    return version("broca")


@dataclass(frozen=True)
class ModelInfo:
    """The model that was examined.

    Attributes:
        name: What the user called it.
        fingerprint: Digest of its weights.
        architecture: Its class in transformers; empty where an older file does not say.
        layers: Decoder layers; None where an older file does not say, as for all that follow.
        heads: Query heads of one attention layer.
        kv_heads: Key/value heads of one attention layer.
        dtype: Number format of the weights; empty where an older file does not say.
        neurons: Feed-forward neurons; None where they do not matter.
        parameters: All parameters; None where they do not matter.
        revision: Its commit on the hub; None for a model from elsewhere.
        remote_code: Whether its class came with it and is not part of transformers.
        adapter: The adapter of PEFT that it was loaded with, its base, and whether it was merged;
            empty without one.
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
        """The name as a headline has it: of a folder only its last part."""
        is_folder = self.name.startswith(("/", ".", "~"))
        return self.name.rstrip("/").rpartition("/")[2] if is_folder else self.name


@dataclass(frozen=True)
class AblationInfo:
    """What became of ablated components.

    Attributes:
        kind: What stands in for their outputs: `zero`, `mean` or `resample`.
        scale: Their gate; 0 ablates.
    """

    kind: str
    scale: float


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
    """What a verb returns and writes.

    Attributes:
        broca: Version of broca.
        schema: Version of the layout of its file.
        kind: What it is a result of.
    """

    FILE: ClassVar[str] = ""
    """Name of its file in an out folder; empty where every result has its own."""
    PAGE: ClassVar[str] = ""
    """Name of its page there; empty where it has none."""
    VERB: ClassVar[str] = ""
    """The command that writes it."""

    broca: str = field(default_factory=version_of_broca)
    schema: int = SCHEMA
    kind: str = ""

    def __init_subclass__(cls, *, verb: str, file: str = "", page: str = "") -> None:
        cls.VERB, cls.FILE, cls.PAGE = verb, file, page

    @abstractmethod
    def summary(self) -> tuple[str, ...]:
        """At most five lines that lead with the verdict in words."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The lines of `to_frame`, each a value by column."""

    @overload
    def to_frame(
        self, library: Literal["pandas"] = "pandas", *, table: str | None = None
    ) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"], *, table: str | None = None) -> Any: ...
    def to_frame(self, library: str = "pandas", *, table: str | None = None) -> Any:
        """The result as a table; docs/results.md says what a line is.

        Args:
            library: `pandas`, or `polars` where it is installed.
            table: One of `tables` instead, such as `controls`.

        Raises:
            BadInput: Another library, polars is not installed, or the result has no such table.
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
        """Names of the tables that `to_frame` takes; those without lines are left out."""
        return tuple(tables(self))

    def _lines(self, table: str) -> list[dict[str, Any]]:
        known = tables(self)
        if table not in known:
            raise BadInput(
                f"{self.described()} has no table '{table}'{nearest(table, known)}; use "
                f"one of {', '.join(known) or 'none'}"
            )
        return known[table]

    def plot(self) -> Any:
        """The main figure.

        Raises:
            BadInput: This kind of result has none.
        """
        return _reports().plot(self)

    def ablated(self, model: Any, scale: float | None = None) -> AbstractContextManager[Any]:
        """Ablates the selected components in every forward pass and `generate` of a model.

        Args:
            model: What `broca.load` returned, or a causal language model of transformers.
            scale: Factor of their outputs; by default that of the result, else 0.

        Returns:
            A context; `GatedModel.ablated` says what holds within it.

        Raises:
            BadInput: Nothing is selected, or the components were not ablated to zero or scaled.
            BrocaError: The model lacks a component.
        """
        if not getattr(self, "selected", ()):
            raise BadInput(f"this {self.kind} selects no components: there is nothing to ablate")
        how = getattr(self, "ablation", None) or AblationInfo("zero", 0.0)
        if scale is None and how.kind != "zero":
            raise BadInput(
                f"the components were ablated to their {how.kind}, which needs the run's items: "
                "give a `scale`, such as 0"
            )
        gated = import_module("broca.models").taken(model)
        context: AbstractContextManager[Any] = gated.ablated(
            self, how.scale if scale is None else scale
        )
        return context

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the result and its page into a folder, which is made.

        Returns:
            The files, the result's own first.

        Raises:
            BadInput: The folder cannot be written; what was there is unchanged.
        """
        files: tuple[Path, ...] = _reports().write(self, folder)
        return files

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads its file, or the one in a folder.

        Raises:
            BadInput: It does not exist, or is something else.
        """
        path = Path(path)
        file = path / cls.FILE if path.is_dir() and cls.FILE else path
        if not file.is_file():
            raise BadInput(f"'{file}' does not exist: run `{cls.VERB}` first, and to its end")
        text = codec.read_text(file)
        try:
            return codec.decode(cls, text)
        except BadInput as error:
            raise BadInput(str(error).replace("this is", f"'{file}' is", 1)) from error

    @classmethod
    def described(cls) -> str:
        """The kind with its article, such as `an atlas`."""
        return f"{'an' if cls.kind[0] in 'aeiou' else 'a'} {cls.kind}"

    @classmethod
    def where(cls) -> str:
        """Where such a result is found, for messages."""
        return f"the {cls.FILE} of an out folder" if cls.FILE else f"a file of `{cls.VERB}`"

    def __repr__(self) -> str:
        return "\n".join(self.summary())

    def _repr_html_(self) -> str:
        picture: str = _reports().picture(self)
        return picture


def listed(names: tuple[str, ...], *, most: int = 8) -> str:
    """Names joined by commas, the first ones where there are many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _reports() -> Any:
    """The room that renders: it stands after this one, so it is loaded on first use."""
    return import_module("broca.reports")
