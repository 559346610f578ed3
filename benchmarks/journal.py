"""Speed of a journal on disk, and of compressing vectors: `python benchmarks/journal.py`.

Prints the milliseconds (the best of several calls) of the queries that every verification makes,
then size and speed of zlib on vectors like those that broca writes.
"""

from __future__ import annotations

import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from broca.journal import Condition, ItemRecord, Journal

REPEATS = 7
COMPONENTS = 256
MASKS = 10_000
ITEMS_PER_MASK = 10
VECTORS = 200
NEURONS = 100_000
LEVELS = (1, 3, 6, 9)


def main() -> None:
    """Runs both parts."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "j.sqlite") as journal:
        asking(journal, rng)
    compressing(rng)


def asking(journal: Journal, rng: np.random.Generator) -> None:
    """Prints the times of queries to a journal of 100,000 rows."""
    names = tuple(f"L{n // 16}H{n % 16}" for n in range(COMPONENTS))
    components = journal.components(names)
    masks = journal.masks(rng.random((MASKS, COMPONENTS)) < 0.5, components)
    items = journal.items([ItemRecord(b"%d" % n, "task", n) for n in range(ITEMS_PER_MASK)])
    condition = journal.condition(Condition("w", "t", "float32", "zero", 0.0, 0, "", "margin"))
    run = journal.begin_run(
        b"run", settings={}, components=components, items=items, process="benchmark"
    )
    rows = np.repeat(masks, ITEMS_PER_MASK), np.tile(items, MASKS)
    for number, part in enumerate(np.array_split(np.arange(len(rows[0])), 10)):
        where = {"condition": condition, "masks": rows[0][part], "items": rows[1][part]}
        journal.add_plan(run, number, role="scores", **where)
        journal.write(run=run, role="scores", responses=rng.normal(size=len(part)), **where)
    sample = rng.permutation(len(rows[0]))[:10_000]
    digests = [n.to_bytes(16, "little") for n in range(VECTORS)]
    vectors = list(rng.normal(size=(VECTORS, COMPONENTS)).astype(np.float32))
    observed = journal.condition(Condition("w", "t", "float32", "zero", 0.0, 0, "", "score"))
    start = time.perf_counter()
    journal.write_vectors(
        run=run, condition=observed, kind="score", digests=digests, vectors=vectors
    )
    print(f"{1e3 * (time.perf_counter() - start):8.1f} ms  write {VECTORS} vectors of {COMPONENTS}")
    for text, call in {
        "known, 10,000 rows that are there": lambda: journal.known(
            condition, rows[0][sample], rows[1][sample]
        ),
        "known, 10,000 rows that are not": lambda: journal.known(
            observed, rows[0][sample], rows[1][sample]
        ),
        "known, 100,000 rows that are there": lambda: journal.known(condition, *rows),
        "rows asked, of 100,000": lambda: journal.rows_requested(run, "scores"),
        f"read {VECTORS} vectors of {COMPONENTS}": lambda: journal.vectors(observed, digests),
    }.items():
        print(f"{1e3 * fastest(call):8.1f} ms  {text}")


def compressing(rng: np.random.Generator) -> None:
    """Prints the compressed share of vectors, and the speed of zlib in both directions."""
    dense = rng.laplace(size=(4, NEURONS)) ** 3
    sparse = np.where(np.abs(dense) > np.quantile(np.abs(dense), 0.9), dense, 0)
    kinds = {
        f"attributions of {NEURONS:,} neurons": dense,
        "the same, 90 % zeros": sparse,
        "gradients of 1,024 heads": rng.normal(size=(100, 1024)),
        "gradients of 48 heads": rng.normal(size=(1000, 48)),
    }
    for kind, vectors in kinds.items():
        plain = [vector.tobytes() for vector in vectors.astype("<f4")]
        size = sum(map(len, plain))
        for level in LEVELS:
            blobs = [zlib.compress(text, level) for text in plain]
            write_s = fastest(partial(mapped, partial(zlib.compress, level=level), plain), 3)
            read_s = fastest(partial(mapped, zlib.decompress, blobs), 3)
            print(
                f"{kind}, level {level}: {sum(map(len, blobs)) / size:6.1%} of the size, "
                f"{size / write_s / 1e6:.0f} MB/s to write, {size / read_s / 1e6:.0f} MB/s to read"
            )


def mapped(function: Callable[[bytes], bytes], texts: list[bytes]) -> list[bytes]:
    """Returns the function's value for every text."""
    return [function(text) for text in texts]


def fastest(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Returns the seconds of the fastest of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
