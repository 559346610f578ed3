"""Checks that what was read from a file has the types that a dataclass states."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def require_types(value: Any, hint: Any, *, where: str = "") -> None:
    """Checks a value, and all that is in it, against a type.

    Knows dataclasses, tuples, mappings, unions, literals, numbers (an int is a float, a bool is
    neither), and takes anything for what it does not know.

    Args:
        value: What was read.
        hint: Its type.
        where: What to call it in the message.

    Raises:
        TypeError: It, or a part of it, is of another type.
    """
    origin: Any = get_origin(hint)
    inner: tuple[Any, ...] = get_args(hint)
    if origin in (Union, types.UnionType):
        if not any(_fits(value, one) for one in inner):
            raise TypeError(f"{where} is of the wrong type ({type(value).__name__})")
        return
    if hint is Any:
        return
    if origin is Literal:
        if value not in inner:
            raise TypeError(f"{where} is none of {', '.join(map(str, inner))}")
        return
    kind: Any = origin or hint
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{where} is no number")
        return
    fits = isinstance(kind, type) and isinstance(value, kind)
    if not isinstance(kind, type):
        return
    if not fits or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{where} is no {kind.__name__}")
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        for one in fields(kind):
            name = f"{where}.{one.name}".lstrip(".")
            require_types(getattr(value, one.name), hints[one.name], where=name)
    elif kind is tuple and inner:
        parts = (inner[0],) * len(value) if inner[-1] is Ellipsis else inner
        if len(parts) != len(value):
            raise TypeError(f"{where} has {len(value)} parts instead of {len(parts)}")
        for number, (one, part) in enumerate(zip(value, parts, strict=True)):
            require_types(one, part, where=f"{where}[{number}]")
    elif issubclass(kind, Mapping) and inner:
        for key, one in value.items():
            require_types(key, inner[0], where=f"a key of {where}")
            require_types(one, inner[1], where=f"{where}[{key!r}]")


def _fits(value: Any, hint: Any) -> bool:
    if hint is type(None):
        return value is None
    try:
        require_types(value, hint)
    except TypeError:
        return False
    return True
