"""Speed of a journal on disk, and size of its vectors: `python benchmarks/journal.py`.

Prints the milliseconds of what every run does with a journal of 100,000 rows (of looking up, the
best of several calls), then size and speed of vectors like those that broca writes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from broca.store import Condition, ItemRecord, Journal, row_keys

REPEATS = 7
COMPONENTS = 256
MASKS = 10_000
ITEMS_PER_MASK = 10
NEURONS = 100_000
CONDITION = Condition("w", "t", "float32", "zero", 0.0, 0, "", "margin")


def main() -> None:
    """Runs both parts."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        rows(Path(folder) / "rows.sqlite", rng)
        vectors(Path(folder) / "vectors.sqlite", rng)


def rows(path: Path, rng: np.random.Generator) -> None:
    """Prints the times of writing, opening and looking up rows."""
    with Journal(path) as journal:
        components = journal.components([f"L{n // 16}H{n % 16}" for n in range(COMPONENTS)])
        drawn = rng.random((MASKS, COMPONENTS)) < 0.5
        masks = timed(f"{MASKS:,} new masks", lambda: journal.masks(drawn, components))
        items = journal.items([ItemRecord(b"%d" % n, "task", n) for n in range(ITEMS_PER_MASK)])
        keys = row_keys(np.repeat(masks, ITEMS_PER_MASK), np.tile(items, MASKS))
        condition = journal.condition(CONDITION)
        run = journal.begin_run(
            b"run", settings={}, components=components, items=items, process="benchmark"
        )

        def write() -> None:
            for part in np.array_split(keys, 1000):
                journal.write(
                    run=run, role="scores", condition=condition, keys=part,
                    responses=rng.normal(size=len(part)),
                )  # fmt: skip

        timed("1,000 batches of 100 rows", write)
    with Journal(path) as journal:
        sample = rng.permutation(keys)[:10_000]
        timed("first look-up", lambda: journal.find("rows", condition, sample))
        for text, wanted in {
            "10,000 known rows": sample,
            "10,000 unknown rows": sample + 2**50,
            "100,000 known rows": keys,
        }.items():
            timed(text, lambda wanted=wanted: journal.find("rows", condition, wanted), REPEATS)
    timed("opening it", lambda: Journal(path, read_only=True).close(), REPEATS)


def vectors(path: Path, rng: np.random.Generator) -> None:
    """Prints the stored share of vectors, and the speed in both directions."""
    dense = rng.laplace(size=(4, NEURONS)) ** 3
    sparse = np.where(np.abs(dense) > np.quantile(np.abs(dense), 0.9), dense, 0)
    with Journal(path) as journal:
        condition = journal.condition(CONDITION)
        for number, (kind, drawn) in enumerate({
            f"attributions of {NEURONS:,} neurons": dense,
            "the same, 90 % zeros": sparse,
            "gradients of 1,024 heads": rng.normal(size=(100, 1024)),
            "gradients of 48 heads": rng.normal(size=(1000, 48)),
        }.items()):  # fmt: skip
            blobs = [vector.astype("<f4").tobytes() for vector in drawn]
            keys = np.arange(len(blobs)) + 10_000 * number
            batch = {"run": 1, "role": kind, "kind": "vectors", "condition": condition}
            print(f"{kind}, {sum(map(len, blobs)) / 1e6:.1f} MB")
            timed("write", lambda keys=keys, blobs=blobs, batch=batch: journal.write(
                **batch, keys=keys, contents=blobs
            ))  # fmt: skip
            found = journal.find("vectors", condition, keys)
            timed("read", lambda found=found: journal.contents(found), REPEATS)
            *_, line = journal.lines("contents")
            print(f"{len(line.content) / sum(map(len, blobs)):11.1%}  of the size")


def timed(text: str, call: Callable[[], np.ndarray | None], repeats: int = 1) -> np.ndarray | None:
    """Prints the milliseconds of the fastest of several calls, and returns what it returned."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = call()
        times.append(time.perf_counter() - start)
    print(f"{1e3 * min(times):8.1f} ms  {text}")
    return value


if __name__ == "__main__":
    main()
