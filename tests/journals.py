"""Functions that fill journals for tests."""

import sqlite3
from pathlib import Path

import numpy as np

from broca.journal import Condition, ItemRecord

NAMES = ("L0H0", "L0H1", "L1H0", "L1H1", "L2H0", "L2H1", "L3H0", "L3H1", "L4H0")
CONDITION = Condition("w", "t", "float32", "zero", 0.0, 0, "", "margin")
VERSION_1 = Path(__file__).parent / "journal" / "version1.sql"
DIGESTS = [bytes([n]) * 16 for n in range(5)]


def filled(journal, *, rows=12, seed=0, gradients=False):
    """Writes one batch of random rows and returns what was written."""
    rng = np.random.default_rng(seed)
    components = journal.components(NAMES)
    masks = journal.masks(rng.random((rows, 9)) < 0.5, components)
    items = journal.items([ItemRecord(f"{seed} {n}".encode(), "task", n) for n in range(rows)])
    run = journal.begin_run(
        b"run", settings={}, components=components, items=items, process="process 1"
    )
    condition = journal.condition(CONDITION)
    responses = rng.normal(size=rows)
    slopes = rng.normal(size=(rows, 9)).astype(np.float32) if gradients else None
    journal.write(
        run=run, role="search", condition=condition, masks=masks, items=items,
        responses=responses, gradients=slopes, outputs={0: '["x"]'}, tokens=5,
    )  # fmt: skip
    return run, condition, masks, items, responses, slopes


def observed(journal, run, *, digests=DIGESTS, kind="attribution", seed=0):
    """Writes a sparse vector for each digest; returns the condition and the vectors."""
    rng = np.random.default_rng(seed)
    vectors = [
        np.where(rng.random(40 * n) < 0.1, rng.normal(size=40 * n), 0).astype(np.float32)
        for n in range(len(digests))
    ]
    condition = journal.condition(CONDITION)
    journal.write_vectors(
        run=run, condition=condition, kind=kind, digests=digests, vectors=vectors,
        tokens=7,
    )  # fmt: skip
    return condition, vectors


def of_version_1(path):
    """Writes a journal of format version 1 that holds a finished and an unfinished run."""
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1.read_text())
    connection.close()
    return path
