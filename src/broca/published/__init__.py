"""Published head lists by name, such as `published:llama-3.1-8b/gsm8k/css`, and figures.

The data are in the same folder; their notes name contradictions of the source and how they were
resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from broca.errors import BadInput, UnknownName, nearest, require_known

if TYPE_CHECKING:
    from broca.models import GatedModel

PREFIX = "published:"
"""Prefix of published head lists."""


@dataclass(frozen=True)
class PublishedModel:
    """A model with published head lists.

    Attributes:
        hub: Id on the hub.
        layers: Number of decoder layers.
        heads: Number of query heads of a layer.
    """

    hub: str
    layers: int
    heads: int


@dataclass(frozen=True)
class PublishedList:
    """A published head list of a model, a task (or `universal`) and a method."""

    model: str
    task: str
    method: str
    heads: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the list, which can be given instead of heads."""
        return f"{PREFIX}{self.model}/{self.task}/{self.method}"


@dataclass(frozen=True)
class _Published:
    source: str
    notes: tuple[str, ...]
    models: dict[str, PublishedModel]
    lists: tuple[PublishedList, ...]
    results: dict[str, dict[str, Any]]


@cache
def _published() -> _Published:
    text = (files("broca.published") / "compressed_sensing.json").read_text(encoding="utf-8")
    return msgspec.json.decode(text, type=_Published)


def published_models() -> dict[str, PublishedModel]:
    """Returns the models by short name."""
    return _published().models


def published_lists(model: str | None = None) -> tuple[PublishedList, ...]:
    """Returns published head lists, in the order of the source.

    Args:
        model: Only lists of this model, such as `llama-3.1-8b`.

    Raises:
        UnknownName: No lists are published for the model.
    """
    if model is not None:
        require_known("`model`", model, published_models(), error=UnknownName)
    return tuple(entry for entry in _published().lists if model in (None, entry.model))


def notes() -> tuple[str, ...]:
    """Returns notes on contradictions of the source and how they were resolved."""
    return (_published().source, *_published().notes)


def is_published(heads: object) -> bool:
    """Whether heads are the name of a published list."""
    return isinstance(heads, str) and heads.strip().startswith(PREFIX)


def published_heads(heads: Any, model: GatedModel) -> Any:
    """Returns the heads of a published list for a model; other heads stay what they are.

    Args:
        heads: Heads, or a name such as `published:llama-3.1-8b/gsm8k/css`; without a method, css.
        model: The model, which must have the shape of the list's model.

    Raises:
        UnknownName: The list does not exist.
        BadInput: The shape of the model differs from that of the list's model.
    """
    if not is_published(heads):
        return heads
    name = heads.strip()
    if name.count("/") == 1:
        name += "/css"
    lists = {published.name: published for published in published_lists()}
    if name not in lists:
        raise UnknownName(
            f"there is no list '{heads.strip()}'{nearest(name, lists)}; `broca published` shows all"
        )
    shape = published_models()[lists[name].model]
    own = (model.structure.layers, model.heads)
    if (shape.layers, shape.heads) != own:
        raise BadInput(
            f"'{name}' was published for {shape.hub} ({shape.layers} layers of {shape.heads} "
            f"heads), and does not apply to {own[0]} layers of {own[1]} heads"
        )
    return lists[name].heads


_NAMES = {"humaneval_instruct": "humaneval", "rhyme": "rhyming"}
"""Names of tasks in the published data that differ from lm-eval's or the package's."""

_LISTED = {**_NAMES, "profanity": "swearing"}
"""The same in the lists; the published scores of swearing are counts of words."""

_SETS = {"gsm8k": "math", "mbpp": "code", "profanity": "swearing", "rhyme": "rhyming"}
"""The published head set of each task."""

_METHODS = {
    "greedy": "greedy", "one-shot": "one-shot", "cs-bernoulli": "csb", "cs-stratified": "css",
}  # fmt: skip
"""Names of methods in the published data."""


class PublishedFigures:
    """What was published of a model, by task; None or empty for other models and tasks.

    Args:
        model: Short name of the model; None if nothing was published of it.
    """

    def __init__(self, model: str | None) -> None:
        self._tables = _published().results.get(model or "", {})
        lists = published_lists(model) if model else ()
        self._lists = {(listed.task, listed.method): listed.heads for listed in lists}

    @classmethod
    def of(cls, *, layers: int, heads: int, name: str) -> PublishedFigures:
        """Returns the figures of the published model with the shape and name of a loaded one."""
        for short, model in published_models().items():
            same = Path(name.lower()).name == Path(model.hub.lower()).name
            if same and (model.layers, model.heads) == (layers, heads):
                return cls(short)
        return cls(None)

    def top5(self, found_on: str, measured_on: str) -> float | None:
        """Returns a score without the top five heads of a task; intact if `found_on` is empty."""
        return self._score("top5", _SETS.get(found_on, "") if found_on else "intact", measured_on)

    def knowledge(self, heads: str, measured_on: str) -> float | None:
        """Returns a score without a head such as `L0H14`, or a knowledge task's own heads."""
        return self._score("wmdp", heads or "intact", measured_on)

    def knowledge_heads(self) -> tuple[str, ...]:
        """Returns the heads that the knowledge tasks share."""
        others = ("tasks", "intact", "wmdp_bio", "wmdp_chem", "wmdp_cyber")
        return tuple(row for row in self._tables.get("wmdp", {}) if row not in others)

    def sweep(self, task: str, k: int) -> float | None:
        """Returns a score of gsm8k or `general` with the first k heads of gsm8k ablated."""
        known = task in ("gsm8k", "general")
        values = self._tables.get("k_sweep", {}).get(task, ()) if known else ()
        return float(values[k]) if k < len(values) else None

    def heads(self, task: str, method: str = "cs-stratified") -> tuple[str, ...]:
        """Returns the list of a task, or of `universal` heads."""
        return self._lists.get((_LISTED.get(task, task), _METHODS.get(method, "")), ())

    def evaluations(self, method: str) -> str:
        """Returns the masks of the search, such as `100 to 400`; empty if unknown."""
        value: Any = self._tables.get("evaluations", {}).get(_METHODS.get(method, ""), "")
        return " to ".join(map(str, value)) if isinstance(value, list) else str(value)

    def _score(self, name: str, row: str, task: str) -> float | None:
        table, task = self._tables.get(name, {}), _NAMES.get(task, task)
        if row not in table or task not in table["tasks"]:
            return None
        return float(table[row][table["tasks"].index(task)])
