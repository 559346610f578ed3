"""The check of a journal finds what was changed, table by table."""

import sqlite3

import pytest
from journals import CONDITION, DIGESTS, filled, observed

from broca.journal import Journal, blobs
from broca.journal.checking import check


@pytest.mark.parametrize(
    "table", ["rows", "masks", "gradients", "conditions", "outputs", "vectors", "batches"]
)
def test_check_finds_a_changed_value(tmp_path, table):
    """A value that was changed through SQLite makes exactly one finding fail."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, *_ = filled(journal, gradients=True)
        observed(journal, run)
        assert all(finding.passed for finding in check(journal))
    changes = {
        "rows": "UPDATE rows SET response = response + 1e-12 WHERE item = 3",
        "masks": "UPDATE masks SET ablated = x'ff80' WHERE id = 2",
        "gradients": "UPDATE gradients SET gradient = zeroblob(36) WHERE item = 3",
        "outputs": "UPDATE outputs SET output = 'y'",
        "vectors": "UPDATE vectors SET vector = zeroblob(9) WHERE length = 40",
        "batches": "DELETE FROM rows WHERE item = 3",
        "conditions": "UPDATE conditions SET scale = 0.25",
    }
    with sqlite3.connect(tmp_path / "j.sqlite") as connection:
        assert connection.execute(changes[table]).rowcount == 1
    connection.close()
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        wrong = [finding for finding in check(journal) if not finding.passed]
    assert len(wrong) == 1
    assert ("11 are there" if table == "batches" else "altered") in wrong[0].wrong


def test_check_finds_a_vector_that_cannot_be_read():
    """A vector whose seal fits but whose bytes cannot be decoded is found."""
    with Journal.in_memory() as journal:
        run, *_ = filled(journal)
        condition, _ = observed(journal, run)
        journal._connection.execute(
            "UPDATE vectors SET vector = x'00', seal = ? WHERE length = 40",
            (blobs.vector_seal(condition, DIGESTS[1], 40, b"\0"),),
        )
        wrong = [finding for finding in check(journal) if not finding.passed]
    assert [finding.name for finding in wrong] == ["vectors"]
    assert "cannot be read" in wrong[0].wrong


def test_check_finds_a_request_of_a_run_that_is_not_there():
    """A request that names a missing run is found."""
    with Journal.in_memory() as journal:
        filled(journal)
        journal.note_vectors(7, condition=journal.condition(CONDITION), digests=DIGESTS)
        wrong = [finding for finding in check(journal) if not finding.passed]
    assert [finding.name for finding in wrong] == ["references"]
    assert "vector_requests points at a line of runs" in wrong[0].wrong
