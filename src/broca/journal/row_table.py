"""Writes the rows of a journal as a table."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.journal.store import Journal

COLUMNS = (
    "weights", "tokenizer", "dtype", "ablation", "scale", "response", "gradients", "task", "item",
    "item_digest", "ablated", "mask_digest", "value", "output",
)  # fmt: skip
"""Columns of the table; `ablated` are the names of a mask's components, joined by `+`."""

_QUERY = """
SELECT weights, tokenizer, dtype, ablation, scale, conditions.response, conditions.gradients, task,
    items.number, items.digest, masks.components, masks.ablated, masks.digest, rows.response, output
FROM rows JOIN conditions ON conditions.id = rows.condition JOIN items ON items.id = rows.item
JOIN masks ON masks.id = rows.mask
LEFT JOIN outputs ON outputs.condition = rows.condition AND outputs.mask = rows.mask
    AND outputs.item = rows.item
ORDER BY rows.condition, rows.mask, rows.item
"""


def write_rows(journal: Journal, path: str | Path) -> int:
    """Writes a line for each row, as `.csv` or `.parquet` by the file's name.

    Returns:
        The number of written rows.

    Raises:
        BadInput: The name has another ending, or the file cannot be written.
    """
    file = Path(path)
    writers = {".csv": _write_csv, ".parquet": _write_parquet}
    if file.suffix not in writers:
        raise BadInput(f"the name of export '{path}' must end in .csv or .parquet")
    lines = list(_lines(journal))
    unfinished = file.with_name(file.name + ".part")
    try:
        writers[file.suffix](unfinished, lines)
        os.replace(unfinished, file)
    except OSError as error:
        raise BadInput(
            f"export '{path}' cannot be written ({error.strerror}): choose another place"
        ) from error
    return len(lines)


def _lines(journal: Journal) -> Iterator[tuple[Any, ...]]:
    names = {
        number: json.loads(text)
        for number, text in journal.query("SELECT id, names FROM components")
    }
    for line in journal.query(_QUERY):
        *before, item, components, bits, mask, value, output = line
        columns = names[components]
        chosen = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(columns))
        ablated = "+".join(columns[column] for column in np.flatnonzero(chosen))
        before[6] = bool(before[6])
        yield (*before, item.hex(), ablated, mask.hex(), value, output)


def _write_csv(file: Path, lines: list[tuple[Any, ...]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        writer.writerows(lines)


def _write_parquet(file: Path, lines: list[tuple[Any, ...]]) -> None:
    from pyarrow import parquet, table

    columns = list(zip(*lines, strict=True)) or [()] * len(COLUMNS)
    parquet.write_table(table(dict(zip(COLUMNS, map(list, columns), strict=True))), file)
