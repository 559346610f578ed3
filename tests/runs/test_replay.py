"""Rows of a finished run are read as points for another fit."""

import numpy as np
import pytest
from journals import CONDITION
from verbs.run_folders import localize_into

from broca.errors import BadInput
from broca.runs import replay
from broca.store import Journal, RunRows, find_run


def test_rows_are_those_of_the_task(tmp_path):
    """Each row of the task is read once, and the journal's ranking has the same selection."""
    result = localize_into(
        tmp_path, model="reference-small", task="capitals", others=["sorting"], rows=240,
        method="cs-stratified", items=8, verify=False, limit=40,
    )  # fmt: skip
    run_folder = replay.localized_in(tmp_path)
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record.digests["run"])
        problem = replay.problem_of_run(journal, run)
        rows = replay.task_rows(journal, run, problem)
        ranking = replay.ranking_from_journal(journal, run)
    tasks = {rows.records[item].task for item in rows.items.tolist()}
    assert tasks == {"capitals"}
    assert rows.masks.shape == (len(rows.items), 48)
    assert rows.condition.response == result.response
    pairs = {(mask.tobytes(), item) for mask, item in zip(rows.masks, rows.items, strict=True)}
    assert len(pairs) == len(rows.items)
    assert tuple(rows.components[column] for column in ranking.selected) == result.selected


def rows_of(*rows):
    """Returns rows from triples (ablated, item, response)."""
    masks, items, responses = zip(*rows, strict=True)
    return RunRows(
        (), CONDITION, np.array(masks, dtype=bool), np.array(items), {}, np.array(responses)
    )


def test_changes_are_against_the_intact_model_on_the_same_items():
    """Items without an intact response are left out; two masks do not suffice for a fit."""
    rows = rows_of(
        ([0, 1], 1, 2.0), ([0, 0], 1, 5.0), ([1, 0], 2, 1.0), ([0, 0], 2, 7.0),
        ([0, 1], 2, 6.0), ([1, 1], 1, 0.0), ([1, 0], 3, -100.0),
    )  # fmt: skip
    masks, changes = replay.mask_changes(rows)
    assert masks.tolist() == [[False, True], [True, False], [True, True]]
    assert changes.tolist() == [(-3.0 - 1.0) / 2, -6.0, -5.0]
    with pytest.raises(BadInput, match=r"measured 2 masks .* with more `rows`"):
        replay.mask_changes(rows_of(([0, 0], 1, 5.0), ([1, 0], 1, 2.0), ([0, 1], 1, 3.0)))
