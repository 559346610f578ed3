"""Functions that fill journals for tests, and read them whole."""

from collections import Counter
from contextlib import nullcontext

import numpy as np

from broca.store import Condition, ItemRecord, Journal, row_keys, vector_keys

NAMES = ("L0H0", "L0H1", "L1H0", "L1H1", "L2H0", "L2H1", "L3H0", "L3H1", "L4H0")
CONDITION = Condition("w", "t", "float32", "zero", 0.0, 0, "", "margin")
CHANGES = {
    "weights": "v", "tokenizer": "u", "dtype": "bfloat16", "ablation": "mean", "scale": 0.5,
    "seed": 1, "donors": "d", "response": "accuracy", "gradients": True,
}  # fmt: skip
"""Another value for every field of `CONDITION`."""
VECTORS = vector_keys("attribution", [str(n) for n in range(5)])
TABLES = ("conditions", "components", "items", "masks", "runs", "plans", "batches", "contents")


def filled(journal, *, rows=12, seed=0, gradients=False):
    """Writes a batch of random rows and the output of the first; returns what was written."""
    rng = np.random.default_rng(seed)
    components = journal.components(NAMES)
    masks = journal.masks(rng.random((rows, 9)) < 0.5, components)
    items = journal.items([ItemRecord(f"{seed} {n}".encode(), "task", n) for n in range(rows)])
    run = journal.begin_run(
        b"run", settings={}, components=components, items=items, process="process 1"
    )
    condition = journal.condition(Condition(**{**CONDITION.__dict__, "gradients": gradients}))
    responses, keys = rng.normal(size=rows), row_keys(masks, items)
    slopes = rng.normal(size=(rows, 9)).astype(np.float32)
    batch = {"run": run, "role": "search", "condition": condition}
    with journal.transaction():
        journal.write(
            **batch, keys=keys, responses=responses, tokens=5,
            contents=[slope.tobytes() for slope in slopes] if gradients else [],
        )  # fmt: skip
        journal.write(**batch, kind="outputs", keys=keys[:1], contents=[b'["x"]'])
    return run, condition, keys, responses, slopes


def observed(journal, run, *, keys=VECTORS, seed=0):
    """Writes a sparse vector of another length for each key; returns condition and vectors."""
    rng = np.random.default_rng(seed)
    vectors = [
        np.where(rng.random(40 * n) < 0.1, rng.normal(size=40 * n), 0).astype("<f4").tobytes()
        for n in range(len(keys))
    ]
    condition = journal.condition(CONDITION)
    journal.write(
        run=run, role="attribution", kind="vectors", condition=condition, keys=keys,
        contents=vectors, tokens=7,
    )  # fmt: skip
    return condition, vectors


def totals(path):
    """Reads every line of a journal, a file or an open one, which compares its checksums.

    No row, output or vector may be there twice. Returns the numbers of batches, rows, outputs,
    vectors and tokens.
    """
    counts, keys = Counter(batches=0, rows=0, outputs=0, vectors=0, tokens=0), set()
    opened = nullcontext(path) if isinstance(path, Journal) else Journal(path, read_only=True)
    with opened as journal:
        for table in TABLES:
            for line in journal.lines(table):
                if table == "batches":
                    counts.update({"batches": 1, line.kind: line.rows, "tokens": line.tokens})
                    new = np.frombuffer(line.keys, "<i8").tolist()
                    keys |= {(line.kind, line.condition, key) for key in new}
    assert len(keys) == counts["rows"] + counts["outputs"] + counts["vectors"]
    return dict(counts)
