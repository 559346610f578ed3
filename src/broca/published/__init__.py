"""Published head lists by name, such as `published:llama-3.1-8b/gsm8k/css`, and figures.

The data are in the same folder; their notes name contradictions of the source and how they were
resolved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from broca.errors import BadInput, UnknownName, nearest

if TYPE_CHECKING:
    from broca.models import GatedModel

PREFIX = "published:"
"""Prefix of published head lists."""


@dataclass(frozen=True)
class PublishedModel:
    """A model with published head lists.

    Attributes:
        name: Short name in the lists.
        hub: Id on the hub.
        layers: Number of decoder layers.
        heads: Number of query heads of a layer.
        kv_heads: Number of key/value heads of a layer.
    """

    name: str
    hub: str
    layers: int
    heads: int
    kv_heads: int


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


@cache
def _data() -> dict[str, Any]:
    text = (files("broca.published") / "compressed_sensing.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def published_models() -> dict[str, PublishedModel]:
    """Returns the models by short name."""
    return {name: PublishedModel(name, **fields) for name, fields in _data()["models"].items()}


def published_lists(model: str | None = None) -> tuple[PublishedList, ...]:
    """Returns published head lists, in the order of the source.

    Args:
        model: Only lists of this model, such as `llama-3.1-8b`.

    Raises:
        UnknownName: No lists are published for the model.
    """
    models = published_models()
    if model is not None and model not in models:
        raise UnknownName(
            f"`model` '{model}' has no published lists{nearest(model, models)}; known are "
            f"{', '.join(models)}"
        )
    return tuple(
        PublishedList(**{**entry, "heads": tuple(entry["heads"])})
        for entry in _data()["lists"]
        if model in (None, entry["model"])
    )


def published_results(model: str) -> dict[str, Any]:
    """Returns the published figures of a model by table; empty if there are none."""
    results: dict[str, Any] = _data()["results"].get(model, {})
    return results


def notes() -> tuple[str, ...]:
    """Returns notes on contradictions of the source and how they were resolved."""
    return (_data()["source"], *_data()["notes"])


def model_like(*, layers: int, heads: int, name: str) -> PublishedModel | None:
    """Returns the published model with the shape and the name of a loaded model."""
    for model in published_models().values():
        hub_name = model.hub.rsplit("/", 1)[-1].lower()
        if (model.layers, model.heads) == (layers, heads) and hub_name in name.lower():
            return model
    return None


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
            f"heads); this model has {own[0]} layers of {own[1]} heads, so that the list does not "
            "apply"
        )
    return lists[name].heads
