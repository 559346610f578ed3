"""Examines a whole journal: pages, seals, digests, and that everything fits together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from broca.errors import JournalDamaged
from broca.journal.files import require_sound
from broca.journal.keys import Condition, components_digest, mask_digests
from broca.journal.store import Journal, gradient_seal, seal

_AT_ONCE = 10_000


@dataclass(frozen=True)
class Finding:
    """What one examination found: its name, and what is wrong (empty if nothing is)."""

    name: str
    wrong: str

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


def check(journal: Journal) -> list[Finding]:
    """Examines everything; what is wrong is said, nothing is mended."""
    found = []
    for name, examine in _EXAMINATIONS.items():
        try:
            wrong = next(examine(journal), "")
        except JournalDamaged as error:
            wrong = str(error)
        found.append(Finding(name, wrong))
    return found


def _pages(journal: Journal) -> Iterator[str]:
    require_sound(journal._connection, name=journal.name, whole=True)
    yield from ()


def _references(journal: Journal) -> Iterator[str]:
    for table, _, parent, _ in journal.query("PRAGMA foreign_key_check"):
        yield f"a line of {table} points at a line of {parent} that is not there"


def _rows(journal: Journal) -> Iterator[str]:
    for condition, mask, item, response, written in _each(
        journal, "rows", "condition, mask, item, response, seal"
    ):
        if seal(condition, mask, item, response) != written:
            yield f"the row of mask {mask} and item {item} was altered"


def _gradients(journal: Journal) -> Iterator[str]:
    for condition, mask, item, gradient, written in _each(
        journal, "gradients", "condition, mask, item, gradient, seal"
    ):
        if gradient_seal(condition, mask, item, gradient) != written:
            yield f"the gradient of mask {mask} and item {item} was altered"


def _outputs(journal: Journal) -> Iterator[str]:
    for condition, mask, item, text, written in _each(
        journal, "outputs", "condition, mask, item, output, seal"
    ):
        if gradient_seal(condition, mask, item, text.encode()) != written:
            yield f"the output of mask {mask} and item {item} was altered"


def _masks(journal: Journal) -> Iterator[str]:
    lists = {}
    for number, digest, names in _each(journal, "components", "id, digest, names"):
        lists[number] = components_digest(json.loads(names)), len(json.loads(names))
        if lists[number][0] != digest:
            yield f"the list of components {number} was altered"
    for number, digest, components, bits in _each(
        journal, "masks", "id, digest, components, ablated"
    ):
        own, count = lists[components]
        packed = np.frombuffer(bits, dtype=np.uint8)[None]
        if mask_digests(np.unpackbits(packed, axis=1, count=count).astype(bool), own) != [digest]:
            yield f"mask {number} was altered"


def _conditions(journal: Journal) -> Iterator[str]:
    for number, digest, *values in _each(
        journal,
        "conditions",
        "id, digest, weights, tokenizer, dtype, ablation, scale, seed, donors, response, gradients",
    ):
        if _condition(*values).digest() != digest:
            yield f"condition {number} was altered"


def _condition(*values: Any) -> Condition:
    names = [one.name for one in fields(Condition)]
    return Condition(**{**dict(zip(names, values, strict=True)), "gradients": bool(values[-1])})


def _batches(journal: Journal) -> Iterator[str]:
    for number, said, there in journal.query(
        "SELECT batches.id, batches.rows, count(rows.batch) FROM batches "
        "LEFT JOIN rows ON rows.batch = batches.id GROUP BY batches.id"
    ):
        if said != there:
            yield f"batch {number} had {said} rows, and {there} are there"


def _each(journal: Journal, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """All lines of a table, without holding them all in memory."""
    keys = {"rows", "gradients", "outputs"}
    order = "condition, mask, item" if table in keys else "id"
    width = 3 if table in keys else 1
    last: tuple[Any, ...] = (-1,) * width
    while some := journal.query(
        f"SELECT {columns} FROM {table} WHERE ({order}) > ({', '.join('?' * width)}) "
        f"ORDER BY {order} LIMIT {_AT_ONCE}",
        last,
    ):
        yield from some
        last = tuple(some[-1][:width])


_EXAMINATIONS: dict[str, Callable[[Journal], Iterator[str]]] = {
    "pages and indexes": _pages,
    "references": _references,
    "conditions": _conditions,
    "components and masks": _masks,
    "rows": _rows,
    "gradients": _gradients,
    "outputs": _outputs,
    "batches": _batches,
}
