"""Components: what can be ablated, their names, and the order of the columns of every matrix.

Pure data, without torch. Names follow the field: `L12H3` is query head 3 of layer 12, `L12G1` the
query heads that share key/value head 1, `L12A` the attention layer, `L12M` the MLP block, `L12`
the whole decoder layer, `L12E7` routed expert 7, `L12N40` feed-forward neuron 40. Layers and
indices count from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, UnknownName, nearest


@dataclass(frozen=True)
class Naming:
    """How the components of a kind are named and drawn.

    Attributes:
        kind: The kind, as in `Component.kind`.
        letter: Letter between layer and index of a name; empty for the layer itself.
        noun: Noun in texts; its plural has an s.
        title: Title in pictures; the noun if it is empty.
        single: Whether a layer has only one, whose name has no index.
        only_heads: Whether it is nothing but query heads.
    """

    kind: str
    letter: str
    noun: str
    title: str = ""
    single: bool = False
    only_heads: bool = False


NAMINGS = {
    naming.kind: naming
    for naming in (
        Naming("attention", "A", "attention layer", "attention", single=True, only_heads=True),
        Naming("head", "H", "head", only_heads=True),
        Naming("kv-group", "G", "KV group", only_heads=True),
        Naming("mlp", "M", "MLP block", "MLP", single=True),
        Naming("expert", "E", "expert"),
        Naming("neuron", "N", "neuron"),
        Naming("layer", "", "layer", single=True),
    )
}
"""The kinds of component from left to right in pictures."""

_KIND_OF_LETTER = {naming.letter: kind for kind, naming in NAMINGS.items()}
_NAME = re.compile(r"L(\d{1,5})([A-Z]?)(\d{0,6})")


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """A part of a model that can be ablated.

    Attributes:
        layer: Decoder layer, from 0.
        kind: Kind of the component.
        index: Number within the layer; None for kinds of which a layer has only one.
    """

    layer: int
    kind: str
    index: int | None = None

    @property
    def name(self) -> str:
        """The component's name, such as `L12H3`."""
        return f"L{self.layer}{NAMINGS[self.kind].letter}{'' if self.index is None else self.index}"

    def heads(self, heads: int, kv_heads: int) -> range:
        """Returns its query heads in a layer of so many query heads and key/value heads."""
        sizes = {"head": 1, "kv-group": heads // kv_heads, "attention": heads, "layer": heads}
        size = sizes.get(self.kind, 0)
        first = size * (self.index or 0)
        return range(first, first + size)

    @classmethod
    def parse(cls, name: object) -> Component:
        """Reads a name such as `L12H3`.

        Raises:
            BadInput: The text is not the name of any kind of component.
        """
        match = _NAME.fullmatch(str(name).strip())
        layer, letter, index = match.groups() if match else ("", "", "")
        kind = _KIND_OF_LETTER.get(letter)
        if not layer or kind is None or NAMINGS[kind].single == bool(index):
            raise BadInput(f"'{name}' is not a component name: head 3 of layer 12 is written L12H3")
        return cls(int(layer), kind, int(index) if index else None)


def components_in(given: Any) -> list[Component]:
    """Returns the components of names joined by `+`, of names or components, or of a result.

    Raises:
        BadInput: A name is malformed, or the result does not select one set.
    """
    named = getattr(given, "selected", given)
    if isinstance(named, str):
        named = [name for name in named.split("+") if name.strip()]
    if not isinstance(named, Iterable):
        raise BadInput(f"give components as names or in a list, not as {type(given).__name__}")
    return [Component.parse(getattr(one, "name", one)) for one in named]


@dataclass(frozen=True)
class ComponentSet(Sequence[Component]):
    """An ordered list of components: position i is column i of every matrix.

    Raises:
        ValueError: The same component occurs twice.
    """

    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        if len(set(self.components)) != len(self.components):
            raise ValueError("the set contains a component twice")

    def __len__(self) -> int:
        return len(self.components)

    def __getitem__(self, key):  # type: ignore[no-untyped-def]  # overloads would say no more
        return self.components[key]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names, in column order."""
        return tuple(component.name for component in self.components)

    @cached_property
    def _column_of_name(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.names)}

    def column(self, name: str) -> int:
        """Returns the column of the component called `name`.

        Raises:
            BadInput: `name` is not the name of a component.
            UnknownName: The model has no such component.
        """
        canonical = Component.parse(name).name
        if canonical not in self._column_of_name:
            raise UnknownName(
                f"the model has no component '{canonical}'{nearest(canonical, self.names)} "
                f"(it has {len(self)}, from {self.names[0]} to {self.names[-1]})"
            )
        return self._column_of_name[canonical]

    def columns(self, names: Any) -> list[int]:
        """Returns the columns of `names`, which `components_in` reads."""
        return [self.column(component.name) for component in components_in(names)]

    def mask(self, names: Any) -> NDArray[np.bool_]:
        """Returns a boolean vector over the components, True for those in `names` (ablated)."""
        return np.isin(np.arange(len(self)), self.columns(names))
