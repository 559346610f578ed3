"""The codec of all results: frozen data classes to JSON and back. Every error is one line.

It writes with the standard library alone: `broca doctor` also reports where NumPy is broken.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from broca.errors import BadInput
from broca.results.omitted import complete, omit
from broca.results.upgrades import upgraded

if TYPE_CHECKING:
    from broca.results.base import Result

FORMER_KEYS = {"worst_other"}
"""Keys of older files whose values are computed from the others."""

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound="Result")


def plain(value: Any) -> Any:
    """Converts data classes to dictionaries and lists, with keys in the order of the fields.

    NaN and infinities, which JSON lacks, become None; NumPy's numbers and arrays become plain ones.
    """
    if is_dataclass(value):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def restored(data: Any, kind: type[T] | Any) -> T:
    """Converts parsed JSON to the type from which it was written.

    Args:
        data: What `json.loads` returned.
        kind: A data class, or any type made of data classes, tuples, dictionaries and numbers.

    Raises:
        ValueError: A part is missing, unknown, or of another type.
    """
    import msgspec

    data = plain(data)
    try:
        value: T = msgspec.convert(data, kind, strict=True)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ValueError(str(error)) from error
    _require_known(data, plain(value), where="$")
    return value


def encode(value: Any, *, indent: int | None = 2) -> str:
    """Writes any data class as JSON with a final line break and keys in the order of the fields.

    Args:
        value: The data class. A result omits values that stand in another place of its file.
        indent: Number of spaces of a level; None writes one line.
    """
    data = plain(value)
    if isinstance(data, dict):
        omit(data.get("kind", ""), data)
    return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def decode(kind: type[ResultT], text: str) -> ResultT:
    """Reads a result that `encode`, or an older version of broca, wrote.

    Raises:
        BadInput: The text is not such a result, or has a schema that this version does not know.
    """
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError(f"Expected `object`, got `{type(data).__name__}`")
        data = upgraded(kind.kind, data, to=kind.schema)
        complete(kind.kind, data)
        return restored(data, kind)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
        raise BadInput(
            f"this is not {kind.described()} of broca ({reason}); give {kind.where()}"
        ) from error


def read_text(file: Path) -> str:
    """Reads the text of a file.

    Raises:
        BadInput: The file cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"'{file}' cannot be read ({error}): give a file that broca wrote"
        ) from error


def _require_known(data: Any, written: Any, *, where: str) -> None:
    """Refuses fields that the type does not have, because their values would be lost.

    Raises:
        ValueError: The data have an unknown field.
    """
    if isinstance(data, dict) and isinstance(written, dict):
        for key, value in data.items():
            if key in written:
                _require_known(value, written[key], where=f"{where}.{key}")
            elif key not in FORMER_KEYS:
                raise ValueError(f"unknown field `{key}` - at `{where}`")
    elif isinstance(data, list) and isinstance(written, list):
        for number, (value, other) in enumerate(zip(data, written, strict=True)):
            _require_known(value, other, where=f"{where}[{number}]")
