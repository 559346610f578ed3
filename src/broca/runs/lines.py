"""Files of one JSON line for each finished piece of work: a kill loses the last piece at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from broca.errors import BadInput
from broca.results.files import write_beside

Key = TypeVar("Key", bound=Hashable)
KeyOut = TypeVar("KeyOut", bound=Hashable, covariant=True)


class Keyed(Protocol[KeyOut]):
    """A piece of work that can be written as a line."""

    @property
    def key(self) -> KeyOut:
        """What was asked: two pieces of one key are the same work."""

    def to_line(self) -> str:
        """As one line of JSON, with its end."""


Piece = TypeVar("Piece", bound=Keyed[Hashable])


class LineFile(Generic[Piece, Key]):
    """Pieces of work by their keys, kept in a file as they are finished.

    Args:
        path: The file; it need not exist, its folder does.
        read: Makes a piece from its line; raises ValueError for anything else.

    Raises:
        BadInput: The file holds something else.
    """

    def __init__(self, path: Path, read: Callable[[str], Piece]) -> None:
        self.path = path
        self._read = read
        self._pieces: dict[Hashable, Piece] = {}
        if path.exists():
            self._pieces = {piece.key: piece for piece in self._stored()}

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All of them, in the order in which they were finished."""
        return tuple(self._pieces.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._pieces

    def append(self, piece: Piece) -> None:
        """Adds a piece and has it on the disk.

        Raises:
            BadInput: The file cannot be written.
        """
        try:
            with self.path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(piece.to_line())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadInput(
                f"'{self.path}' cannot be written ({error.strerror}): make room or choose another "
                "--out; what is finished is kept"
            ) from error
        self._pieces[piece.key] = piece

    def forget(self, drop: Callable[[Piece], bool]) -> int:
        """Takes pieces out, so that they are done again; returns how many."""
        kept = {key: piece for key, piece in self._pieces.items() if not drop(piece)}
        gone = len(self._pieces) - len(kept)
        if gone:
            write_beside(self.path, "".join(piece.to_line() for piece in kept.values()))
            self._pieces = kept
        return gone

    def _stored(self) -> Iterable[Piece]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                f"'{self.path}' cannot be read ({error}): choose another --out"
            ) from error
        end = text.rfind("\n") + 1
        if end < len(text):  # a kill while the last line was written: that piece is done again
            write_beside(self.path, text[:end])
        for number, line in enumerate(text[:end].splitlines(), start=1):
            try:
                yield self._read(line)
            except ValueError as error:
                raise BadInput(
                    f"line {number} of '{self.path}' cannot be read ({error}): choose another "
                    "--out, or move the file away"
                ) from error
