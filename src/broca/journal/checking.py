"""Checks a whole journal: pages, checksums, digests, references and counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from broca.errors import JournalDamaged
from broca.journal.blobs import blob_seal, row_seal, unpacked, vector_seal
from broca.journal.files import require_sound
from broca.journal.keys import Condition, components_digest, mask_digests
from broca.journal.store import Journal

_AT_ONCE = 10_000

FaultSearch = Callable[[Journal], Iterator[str]]
"""Yields a line for each fault."""


@dataclass(frozen=True)
class Finding:
    """The result of a check: its name and its faults."""

    name: str
    wrong: str

    @property
    def passed(self) -> bool:
        """Whether there are no faults."""
        return not self.wrong


def check(journal: Journal) -> list[Finding]:
    """Runs all checks and repairs nothing."""
    findings = []
    for name, examine in _EXAMINATIONS.items():
        try:
            wrong = next(examine(journal), "")
        except JournalDamaged as error:
            wrong = str(error)
        findings.append(Finding(name, wrong))
    return findings


def _pages(journal: Journal) -> Iterator[str]:
    require_sound(journal._connection, name=journal.name, indexes=True)
    yield from ()


def _references(journal: Journal) -> Iterator[str]:
    for table, _, parent, _ in journal.query("PRAGMA foreign_key_check"):
        yield f"a line of {table} points at a line of {parent} that is not there"


def _sealed(table: str, column: str, seal_of: Callable[..., int]) -> FaultSearch:
    """Checks the checksums of a table whose lines belong to a mask and an item."""

    def examine(journal: Journal) -> Iterator[str]:
        for condition, mask, item, value, seal in _lines(
            journal, table, f"condition, mask, item, {column}, seal"
        ):
            if seal_of(condition, mask, item, value) != seal:
                yield f"the {table.removesuffix('s')} of mask {mask} and item {item} was altered"

    return examine


def _output_seal(condition: int, mask: int, item: int, text: str) -> int:
    return blob_seal(condition, mask, item, text.encode())


def _vectors(journal: Journal) -> Iterator[str]:
    for condition, digest, length, blob, seal in _lines(
        journal, "vectors", "condition, digest, length, vector, seal"
    ):
        if vector_seal(condition, digest, length, blob) != seal:
            yield f"the vector of observation {digest.hex()} was altered"
        try:
            unpacked(blob, length)
        except ValueError as error:
            yield f"the vector of observation {digest.hex()} cannot be read ({error})"


def _masks(journal: Journal) -> Iterator[str]:
    lists = {}
    for number, digest, names in _lines(journal, "components", "id, digest, names"):
        lists[number] = components_digest(json.loads(names)), len(json.loads(names))
        if lists[number][0] != digest:
            yield f"the list of components {number} was altered"
    for number, digest, components, bits in _lines(
        journal, "masks", "id, digest, components, ablated"
    ):
        names_digest, count = lists[components]
        packed = np.frombuffer(bits, dtype=np.uint8)[None]
        mask = np.unpackbits(packed, axis=1, count=count).astype(bool)
        if mask_digests(mask, names_digest) != [digest]:
            yield f"mask {number} was altered"


def _conditions(journal: Journal) -> Iterator[str]:
    for number, digest, *values in _lines(
        journal,
        "conditions",
        "id, digest, weights, tokenizer, dtype, ablation, scale, seed, donors, response, gradients",
    ):
        if _condition(*values).digest() != digest:
            yield f"condition {number} was altered"


def _condition(*values: Any) -> Condition:
    names = [field.name for field in fields(Condition)]
    return Condition(**{**dict(zip(names, values, strict=True)), "gradients": bool(values[-1])})


def _batches(journal: Journal) -> Iterator[str]:
    stored = dict(journal.query("SELECT id, 0 FROM batches"))
    for table in ("rows", "vectors"):
        for batch, count in journal.query(f"SELECT batch, count(*) FROM {table} GROUP BY batch"):
            stored[batch] = stored.get(batch, 0) + count
    for batch, rows in journal.query("SELECT id, rows - pruned FROM batches"):
        if rows != stored[batch]:
            yield f"batch {batch} had {rows} rows, and {stored[batch]} are there"


_KEYS = {
    "rows": ("condition", "mask", "item"),
    "gradients": ("condition", "mask", "item"),
    "outputs": ("condition", "mask", "item"),
    "vectors": ("condition", "digest"),
}
"""Key columns of tables whose lines are not numbered."""


def _lines(journal: Journal, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yields all lines of a table, without loading all of them into memory."""
    keys = _KEYS.get(table, ("id",))
    order, last = ", ".join(keys), (-1,) * len(keys)
    while lines := journal.query(
        f"SELECT {columns} FROM {table} WHERE ({order}) > ({', '.join('?' * len(keys))}) "
        f"ORDER BY {order} LIMIT {_AT_ONCE}",
        last,
    ):
        yield from lines
        last = tuple(lines[-1][: len(keys)])


_EXAMINATIONS: dict[str, FaultSearch] = {
    "pages and indexes": _pages,
    "references": _references,
    "conditions": _conditions,
    "components and masks": _masks,
    "rows": _sealed("rows", "response", row_seal),
    "gradients": _sealed("gradients", "gradient", blob_seal),
    "outputs": _sealed("outputs", "output", _output_seal),
    "vectors": _vectors,
    "batches": _batches,
}
