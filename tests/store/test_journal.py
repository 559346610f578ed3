"""Rows, outputs and vectors are written once and read back bit for bit, or refused."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from dying import die, killed
from journals import CHANGES, CONDITION, NAMES, VECTORS, filled, observed, totals

from broca.errors import JournalDamaged, JournalNotWritable
from broca.store import Condition, ItemRecord, Journal, row_keys
from broca.store.runs import read_gradients


def test_rows_come_back_bit_for_bit(tmp_path):
    """Responses, gradients and outputs are equal after reopening.

    Unknown rows are told as such, and lost contents are refused.
    """
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, keys, responses, slopes = filled(journal, gradients=True)
    for read_only in (True, False):
        with Journal(tmp_path / "j.sqlite", read_only=read_only) as journal:
            order = np.array([7, 0, 7, 3])
            entries = journal.find("rows", condition, keys[order])
            np.testing.assert_array_equal(entries["response"], responses[order])
            np.testing.assert_array_equal(read_gradients(journal, entries), slopes[order])
            outputs = journal.contents(journal.find("outputs", condition, keys[:2]))
            assert outputs == [b'["x"]', None]
            for kind, where, unknown in (
                ("rows", condition, row_keys(keys >> 32, (keys & 0xFFFFFFFF)[::-1])),
                ("rows", condition + 1, keys),
                ("vectors", condition, keys),
            ):
                assert not journal.find(kind, where, unknown)["batch"].any()
    with Journal(tmp_path / "j.sqlite") as journal:
        with journal.transaction() as connection:
            connection.execute("DELETE FROM contents")
        with pytest.raises(JournalDamaged, match="line 1 of contents is missing"):
            read_gradients(journal, entries)


def test_vectors_come_back_bit_for_bit(tmp_path):
    """Vectors of any length are equal after reopening, in any order; sparse ones take less room."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, *_ = filled(journal)
        condition, vectors = observed(journal, run)
        assert journal.cost(run) == (12, 5 + 7)
    keys = np.array([VECTORS[3], 8, VECTORS[0], VECTORS[3]])
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        back = journal.contents(journal.find("vectors", condition, keys))
        assert back == [vectors[3], None, vectors[0], vectors[3]]
        assert journal.contents(journal.find("vectors", condition, keys[:0])) == []
        *_, content = journal.lines("contents")
        assert len(content.content) < sum(map(len, vectors)) / 2


def test_what_is_written_is_known_at_once(tmp_path):
    """After batches of any size every row is found in any order, and no other one."""
    rng, expected = np.random.default_rng(1), {}
    batch = {"run": 1, "role": "search", "condition": 1}
    with Journal(tmp_path / "j.sqlite") as journal:
        for size in rng.integers(1, 40, 60).tolist():
            keys = rng.choice(10**6, 4 * size, replace=False)
            keys = np.array([key for key in keys.tolist() if key not in expected][:size])
            found = journal.find("rows", 1, np.append(keys, list(expected)[:9]).astype(np.int64))
            assert (found["batch"] > 0).tolist() == [False] * size + [True] * min(9, len(expected))
            responses = rng.normal(size=size)
            journal.write(**batch, keys=keys, responses=responses)
            expected |= dict(zip(keys.tolist(), responses.tolist(), strict=True))
        wanted = rng.permutation(list(expected))
        for opened in (journal, Journal(tmp_path / "j.sqlite", read_only=True)):
            found = opened.find("rows", 1, wanted)
            assert found["response"].tolist() == [expected[key] for key in wanted.tolist()]


def test_keys_are_contents(tmp_path):
    """Every field of a condition, the columns and every bit of a mask tell rows apart."""
    assert set(CHANGES) == set(asdict(CONDITION))
    conditions = [CONDITION, *(replace(CONDITION, **{name: CHANGES[name]}) for name in CHANGES)]
    assert [Condition.read(condition.text()) for condition in conditions] == conditions
    masks = np.vstack([np.zeros((1, 9), dtype=bool), np.eye(9, dtype=bool)])
    items = [ItemRecord(b"a", "task", 1, "prompt"), ItemRecord(b"b", "task", 1, "prompt")]

    def ids(journal):
        columns = [journal.components(names) for names in (NAMES, NAMES[::-1], ("L0H0L0H1",))]
        return (
            [journal.condition(condition) for condition in conditions],
            [journal.masks(masks, column).tolist() for column in columns[:2]],
            [journal.masks(masks[::-1], column).tolist()[::-1] for column in columns[:2]],
            journal.items(items).tolist(),
        )

    with Journal(tmp_path / "j.sqlite") as journal:
        first = ids(journal)
        assert len(set(first[0])) == len(conditions)
        assert len({*first[1][0], *first[1][1]}) == 20
        assert first[1] == first[2]
        assert len(set(first[3])) == 2
        moved = [item._replace(task="other", number=9) for item in items]
        assert journal.items(moved).tolist() == first[3]  # an item is its content
        np.testing.assert_array_equal(journal.ablated(np.array(first[1][0]), 1), masks)
    with Journal(tmp_path / "j.sqlite") as journal:
        assert ids(journal) == first
        assert journal.names(2) == NAMES[::-1]


def test_a_reader_writes_nothing(tmp_path):
    """A closed journal is one file beside an empty lock file, which a reader leaves as it is."""
    with Journal(tmp_path / "j.sqlite") as journal:
        filled(journal)
    assert {file.name for file in tmp_path.iterdir()} == {"j.sqlite", "j.sqlite.lock"}
    before = (tmp_path / "j.sqlite").read_bytes()
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        assert journal.condition(CONDITION) == 1
        with pytest.raises(JournalNotWritable, match="open for reading only"):
            filled(journal, seed=1)
    assert (tmp_path / "j.sqlite").read_bytes() == before


def test_a_full_disk_loses_only_the_batch(tmp_path):
    """A batch that finds no room is refused whole; SQLite's page limit stands for a full disk."""
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        _, condition, keys, responses, _ = filled(journal)
        ((pages,),) = journal.query("PRAGMA page_count")
        journal.query(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalNotWritable, match="make room on the disk"):
            filled(journal, rows=2000, seed=1)
        journal.query("PRAGMA max_page_count = 100000")
        np.testing.assert_array_equal(journal.find("rows", condition, keys)["response"], responses)
        _, _, more, others, _ = filled(journal, rows=2000, seed=1)  # the same process may go on
        np.testing.assert_array_equal(journal.find("rows", condition, more)["response"], others)
    assert totals(path)["rows"] == 2012


def test_a_kill_within_a_write_loses_only_that_batch(tmp_path):
    """A kill before the commit loses that batch alone, and its vectors can be written again."""
    path = tmp_path / "j.sqlite"

    def doomed():
        journal = Journal(path)
        run, *_ = filled(journal)
        observed(journal, run)
        with journal.transaction():
            observed(journal, run, keys=VECTORS + 1)
            die()

    killed(doomed)
    assert totals(path) == {"batches": 3, "rows": 12, "outputs": 1, "vectors": 5, "tokens": 12}
    with Journal(path) as journal:
        condition, vectors = observed(journal, 1, keys=VECTORS + 1)
        assert journal.contents(journal.find("vectors", condition, VECTORS + 1)) == vectors


def test_a_run_that_goes_on_asks_anew():
    """A continued run forgets its plans and keeps what it measured; another run is another."""
    with Journal() as journal:
        run, condition, keys, *_ = filled(journal)
        journal.add_plan(run, role="search", condition=condition, keys=keys)
        journal.finish_run(run)
        items = keys & 0xFFFFFFFF
        again = {"settings": {}, "components": 1, "items": items, "process": "process 2"}
        assert journal.begin_run(b"run", **again) == run
        assert journal.begin_run(b"other", **again) == run + 1
        assert list(journal.lines("plans")) == []
        assert [line.finished for line in journal.lines("runs")] == [None, None]
        assert journal.find("rows", condition, keys)["batch"].all()
        assert journal.cost(run) == (12, 5)
