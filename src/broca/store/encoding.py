"""Encodes problems of searches as JSON, with the types of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


def encoded(value: Any) -> Any:
    """Encodes a problem as JSON: dataclasses, arrays, mappings, sequences and plain values."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[encoded(key), encoded(entry)] for key, entry in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [encoded(entry) for entry in value]}
    return value.item() if isinstance(value, np.generic) else value


def decoded(value: Any) -> Any:
    """Decodes the value of `encoded`; a dataclass becomes a dictionary."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    if set(value) == {"mapping"}:
        return {decoded(key): decoded(entry) for key, entry in value["mapping"]}
    if set(value) == {"tuple"}:
        return tuple(decoded(entry) for entry in value["tuple"])
    return {name: decoded(entry) for name, entry in value.items()}
