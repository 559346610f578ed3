"""Published head lists by name, such as `published:llama-3.1-8b/gsm8k/css`.

The data are in the same folder; their notes name contradictions of the source and how they were
resolved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from broca.errors import BadInput, UnknownName, nearest

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
        PublishedList(entry["model"], entry["task"], entry["method"], tuple(entry["heads"]))
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


def is_published(heads: object) -> bool:
    """Whether heads are the name of a published list."""
    return isinstance(heads, str) and heads.strip().startswith(PREFIX)


def model_like(*, layers: int, heads: int, name: str) -> PublishedModel | None:
    """Returns the published model with the shape and the name of a loaded model."""
    for model in published_models().values():
        hub_name = model.hub.rsplit("/", 1)[-1].lower()
        if (model.layers, model.heads) == (layers, heads) and hub_name in name.lower():
            return model
    return None


def published_heads(text: str, *, layers: int, heads: int) -> tuple[str, ...]:
    """Looks up a list by its name.

    Args:
        text: Name such as `published:llama-3.1-8b/gsm8k/css`; without a method, css.
        layers: Number of decoder layers of the model.
        heads: Number of query heads of a layer of the model.

    Raises:
        UnknownName: The list does not exist.
        BadInput: The shape of the model differs from that of the list's model.
    """
    name = text.strip()
    if name.count("/") == 1:
        name += "/css"
    lists = {published.name: published for published in published_lists()}
    if name not in lists:
        raise UnknownName(
            f"there is no list '{text.strip()}'{nearest(name, lists)}; `broca published` shows all"
        )
    published = lists[name]
    shape = published_models()[published.model]
    if (shape.layers, shape.heads) != (layers, heads):
        raise BadInput(
            f"'{published.name}' was published for {shape.hub} ({shape.layers} layers of "
            f"{shape.heads} heads); this model has {layers} layers of {heads} heads, so that the "
            "list does not apply"
        )
    return published.heads
