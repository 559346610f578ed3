"""`broca.inspect_journal` counts what a journal holds and does not change it."""

import pytest
from journals import CONDITION, NAMES, filled, observed

import broca
from broca.errors import BadInput
from broca.store import Journal


def test_counts_conditions_and_runs(tmp_path):
    """Counts, vectors, conditions and runs are those that were written; the file stays as it is."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, *_ = filled(journal)
        observed(journal, run)
        journal.finish_run(run)
    before = (tmp_path / "j.sqlite").read_bytes()
    contents = broca.inspect_journal(tmp_path / "j.sqlite")
    assert contents.counts["rows"] == contents.counts["items"] == 12
    assert contents.vectors == {"attribution": 5}
    rows = {condition.response: condition.rows for condition in contents.conditions}
    assert rows[CONDITION.response] == 12
    (only,) = contents.runs
    assert (only.id, only.components, only.items) == (run, len(NAMES), 12)
    assert only.finished is not None
    assert (tmp_path / "j.sqlite").read_bytes() == before


def test_a_missing_file_is_refused_and_not_made(tmp_path):
    """A path without a journal is refused in one line."""
    with pytest.raises(BadInput, match="does not exist"):
        broca.inspect_journal(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
