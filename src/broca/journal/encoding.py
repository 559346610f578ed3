"""Problems of searches as JSON, arrays with their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


def encoded(value: Any) -> Any:
    """A problem as JSON: dataclasses, arrays, mappings, sequences and plain values."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if hasattr(value, "__dataclass_fields__"):
        return {one.name: encoded(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[encoded(key), encoded(one)] for key, one in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [encoded(one) for one in value]}
    return value.item() if isinstance(value, np.generic) else value


def decoded(value: Any) -> Any:
    """The value of what `encoded` made; a dataclass comes back as a dictionary."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    if set(value) == {"mapping"}:
        return {decoded(key): decoded(one) for key, one in value["mapping"]}
    if set(value) == {"tuple"}:
        return tuple(decoded(one) for one in value["tuple"])
    return {name: decoded(one) for name, one in value.items()}
