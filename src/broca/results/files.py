"""Results as JSON text, and files that are written completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from broca.errors import BadInput, first_line
from broca.known_paths import place_of

if TYPE_CHECKING:
    from broca.results.base import Result

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound="Result")


def plain(value: Any) -> Any:
    """Converts data classes to dictionaries and lists, with keys in the order of the fields.

    NaN and infinities, which JSON lacks, become None; NumPy's numbers and arrays become plain ones.
    """
    return msgspec.json.decode(_json(value))


def encode(value: Any) -> str:
    """Writes any data class as JSON with a final line break and keys in the order of the fields."""
    return msgspec.json.format(_json(value)).decode() + "\n"


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=lambda array: array.tolist())


def restored(data: Any, kind: type[T] | Any) -> T:
    """Converts plain data to the type from which they were made.

    Args:
        data: What `plain` or `json.loads` returned.
        kind: A data class, or any type made of data classes, tuples, dictionaries and numbers.

    Raises:
        ValueError: A part is missing, unknown, or of another type.
    """
    try:
        value: T = msgspec.convert(data, kind, strict=True)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ValueError(str(error)) from error
    _require_known(data, plain(value), where="$")
    return value


def _require_known(data: Any, written: Any, *, where: str) -> None:
    """Refuses fields that the type does not have, because their values would be lost."""
    if isinstance(data, dict) and isinstance(written, dict):
        for key, value in data.items():
            if key not in written:
                raise ValueError(f"unknown field `{key}` - at `{where}`")
            _require_known(value, written[key], where=f"{where}.{key}")
    elif isinstance(data, list) and isinstance(written, list):
        for number, (value, other) in enumerate(zip(data, written, strict=True)):
            _require_known(value, other, where=f"{where}[{number}]")


def decode(kind: type[ResultT], text: str) -> ResultT:
    """Reads a result that `encode` wrote.

    Raises:
        BadInput: The text is not such a result, or has another schema.
    """
    try:
        data = msgspec.json.decode(text)
        if not isinstance(data, dict):
            raise ValueError(f"Expected `object`, got `{type(data).__name__}`")
        schema = data.get("schema")
        if schema != kind.schema or type(schema) is not int:
            raise ValueError(f"it has schema {schema}, this broca reads schema {kind.schema}")
        return restored(data, kind)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(
            f"this is not {kind.described()} of broca ({first_line(error)}); give a file of "
            f"`{kind.VERB}`"
        ) from error


def read_text(file: Path) -> str:
    """Reads the text of a file.

    Raises:
        BadInput: The file cannot be read, is a device or a pipe, or is too large for a result.
    """
    try:
        if file.exists() and not (file.is_file() and file.stat().st_size <= 2**30):
            raise OSError("it is no regular file of at most 1 GiB")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"'{file}' cannot be read ({error}): give a file that broca wrote"
        ) from error


@contextmanager
def writes(what: str, *, advice: str) -> Iterator[None]:
    """Tells what could not be written, and what to do.

    Raises:
        BadInput: The block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise BadInput(f"{what} cannot be written ({why}): {advice}") from error


def write_beside(path: Path, text: str) -> None:
    """Writes UTF-8 text to a temporary file beside its path, syncs it, then renames it.

    Raises:
        BadInput: The path cannot be written, or the disk is full; an existing file is unchanged.
    """
    part = path.with_name(path.name + ".part")
    content = text.encode()
    advice = "free space or choose another folder, then repeat the command"
    with writes(f"'{path}'", advice=advice):
        part.unlink(missing_ok=True)  # of a killed process, or a link to a file elsewhere
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)


def check_out_folder(out: str | Path) -> Path:
    """Creates the out folder and checks that it can be written, before anything is measured.

    Raises:
        BadInput: The folder cannot be created or written.
    """
    folder = place_of(out)
    with writes(f"`out` '{out}'", advice="choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    return folder
