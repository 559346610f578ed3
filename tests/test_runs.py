"""Runs that are killed, interrupted, repeated or computed in other batches come to the same end."""

import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

import broca
from broca import runs
from broca.engine import EngineOptions
from broca.errors import Interrupted, JournalNotWritable
from broca.interrupts import Stopper
from broca.journal import Journal, read_run, read_runs
from broca.journal.checking import check
from broca.journal.encoding import decoded, encoded
from broca.runs import Journaling, RowProgress, chunk_tokens
from broca.searches import Problem

ASKED = {
    "task": "mc_biology", "others": [], "rows": 360, "items": 9, "response": "margin",
    "verify": False,
}  # fmt: skip


@pytest.fixture
def small_chunks(monkeypatch):
    """Some dozens of rows between two commits, so that a short run has many."""
    monkeypatch.setattr(runs, "NOMINAL_S", 0.0)
    return {**ASKED, "engine_options": EngineOptions(token_budget=512)}


def untimed(result):
    """A result without its times."""
    return replace(result, cost=replace(result.cost, wall_s=0.0))


def totals(path):
    """Rows in a journal, and rows that its batches say were measured."""
    with Journal(path, read_only=True) as journal:
        assert all(one.passed for one in check(journal))
        ((rows,),) = journal.query("SELECT count(*) FROM rows")
        ((measured,),) = journal.query("SELECT coalesce(sum(rows), 0) FROM batches")
    return rows, measured


def test_killed_at_random_moments(reference, small_chunks, tmp_path):
    """SIGKILL, five times on one journal: no row lost or measured twice, the same bytes at the end.

    The moments fall into search, verification and the writing of the report alike.
    """
    start = time.monotonic()
    whole = broca.localize(reference, **small_chunks, journal=tmp_path / "whole.sqlite")
    broca.save(whole, tmp_path / "whole")
    took = time.monotonic() - start
    out, journal = tmp_path / "killed", tmp_path / "killed.sqlite"

    def run():
        broca.save(broca.localize(reference, **small_chunks, journal=journal), out)

    rng = np.random.default_rng(0)
    before = 0
    for moment in rng.uniform(0.1, 0.6, 5):
        child = multiprocessing.get_context("fork").Process(target=run)
        child.start()
        time.sleep(moment * took)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        if journal.exists() and journal.stat().st_size:
            rows, measured = totals(journal)
            assert rows == measured >= before
            before = rows
        if (out / "result.json").exists():
            assert untimed(broca.Result.read(out)) == untimed(whole)
    run()
    again = broca.Result.read(out)
    assert untimed(again).to_json() == untimed(whole).to_json()
    assert totals(journal) == totals(tmp_path / "whole.sqlite")


def test_first_interrupt_ends_after_the_chunk_and_keeps_it(reference, small_chunks, tmp_path):
    """The signal comes while rows are measured; they are kept, and the next run goes on."""
    path = tmp_path / "j.sqlite"
    seen = []

    def progress(stage, progress):
        if stage.startswith("searching") and progress is not None and not seen:
            seen.append(stage)
            os.kill(os.getpid(), signal.SIGINT)

    with Stopper() as stopper, pytest.raises(Interrupted):
        broca.localize(
            reference, **small_chunks, journal=Journaling(path, stopper=stopper),
            on_progress=progress,
        )  # fmt: skip
    assert stopper.requested
    kept, _ = totals(path)
    result = broca.localize(reference, **small_chunks, journal=path)
    whole = broca.localize(reference, **small_chunks)
    assert 0 < kept < result.cost.measured
    assert untimed(result) == untimed(whole)


def test_second_interrupt_ends_at_once():
    """And so does a first one when nothing is being measured."""
    with Stopper() as stopper, stopper.measuring():
        os.kill(os.getpid(), signal.SIGINT)
        assert stopper.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with Stopper() as stopper, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert not stopper.requested


def test_batch_sizes_change_no_ranking(reference, tmp_path):
    """Same ranking and selection; effects equal to 1e-6 of the largest."""
    found = [
        broca.localize(reference, **ASKED, engine_options=EngineOptions(token_budget=budget))
        for budget in (None, 700, 90)
    ]
    for other in found[1:]:
        assert other.selected == found[0].selected
        assert [one.name for one in other.ranking] == [one.name for one in found[0].ranking]
        effects = [np.array([one.effect for one in result.ranking]) for result in (found[0], other)]
        assert np.abs(effects[1] - effects[0]).max() <= 1e-6 * np.abs(effects[0]).max()


def test_a_second_search_reuses_the_first_ones_rows(reference, tmp_path):
    """Of the same journal: the same run costs nothing, another one less; other journals more."""
    path = tmp_path / "j.sqlite"
    first = broca.localize(reference, **ASKED, journal=path)
    assert first.cost.measured == totals(path)[0]
    again = broca.localize(reference, **ASKED, journal=path)
    assert untimed(again) == untimed(first)
    assert totals(path)[0] == first.cost.measured
    longer = broca.localize(reference, **{**ASKED, "rows": 396}, journal=path)
    assert longer.cost.rows == 396
    # new: 4 masks on 9 items, and the proof where another selection is proven
    assert longer.cost.measured <= 36 + 300
    assert totals(path)[0] == first.cost.measured + longer.cost.measured
    with Journal(path, read_only=True) as journal:
        assert [run.rows for run in read_runs(journal)] == [
            first.cost.measured, longer.cost.measured,
        ]  # fmt: skip
        rows = read_run(journal, 1)
    assert rows.masks.shape == (40, 96)
    assert len(rows.responses) == 360
    assert {item.task for item in rows.items} == {"mc_biology"}


def test_resampled_donors_depend_on_items_not_places(reference, tmp_path):
    """Other tasks beside it move the items in the bank; their rows are the same rows."""
    path = tmp_path / "j.sqlite"
    options = {**ASKED, "rows": 90, "ablation": "resample"}
    first = broca.localize(reference, **options, journal=path)
    second = broca.localize(reference, **{**options, "others": ["sorting"]}, journal=path)
    assert second.ranking == first.ranking
    assert second.cost.measured == 300 * (2 if first.selected else 1)  # the other task's alone


def test_the_clock_may_jump(reference, monkeypatch, tmp_path):
    """Backwards by years, at every look: nothing is decided by it."""
    from broca.journal import store

    plain = broca.localize(reference, **ASKED)
    times = iter(range(10**6, 0, -1))
    monkeypatch.setattr(store, "now", lambda: f"{next(times)}")
    monkeypatch.setattr(time, "time", lambda: float(next(times)))
    assert untimed(broca.localize(reference, **ASKED, journal=tmp_path / "j.sqlite")) == untimed(
        plain
    )


def test_a_full_disk_ends_in_one_line_and_the_run_goes_on_later(
    reference, small_chunks, monkeypatch, tmp_path
):
    """The batch at hand is lost, no other; with room again the result is the same."""
    path = tmp_path / "j.sqlite"
    write, count = Journal.write, [0]

    def growing(self, **batch):
        count[0] += 1
        if count[0] == 6:
            (pages,) = self.query("PRAGMA page_count")[0]
            self._connection.execute(f"PRAGMA max_page_count = {pages}")
        write(self, **batch)

    monkeypatch.setattr(Journal, "write", growing)
    with pytest.raises(JournalNotWritable, match="make room"):
        broca.localize(reference, **small_chunks, journal=path)
    monkeypatch.undo()
    rows, measured = totals(path)
    assert rows == measured > 0
    assert broca.localize(reference, **small_chunks, journal=path).ranking


def test_chunks_are_a_matter_of_model_and_device(reference):
    """A second's work on the nominal CPU, but one batch at least; no clock is asked."""
    weights = sum(one.numel() for one in reference.model.parameters())
    assert chunk_tokens(reference, 100) == int(1e11 / (2 * weights))
    assert chunk_tokens(reference, 10**9) == 10**9


def test_problems_survive_json():
    """Arrays with their types, tuples, mappings."""
    problem = Problem(4, np.array([3, 1]), 2, None, 7)
    back = Problem(**decoded(json.loads(json.dumps(encoded(problem)))))
    np.testing.assert_array_equal(back.items, problem.items)
    assert back.items.dtype == problem.items.dtype
    assert (back.components, back.k, back.rows, back.seed) == (4, 2, None, 7)
    value = {"a": (1, (2.5, None)), 3: [True]}
    assert decoded(json.loads(json.dumps(encoded(value)))) == {"a": (1, (2.5, None)), 3: (True,)}


def test_progress_counts_the_plan():
    """Chunks add up; a new plan begins at nothing."""
    seen = []
    shown = RowProgress(seen.append)
    from broca.engine import Progress

    shown.at(0, 50, 100)
    shown.within(Progress(20, 40, 7))
    shown.at(50, 50, 100)
    shown.within(Progress(40, 40, 3))
    assert [(one.done, one.total, one.tokens) for one in seen] == [(25, 100, 7), (100, 100, 10)]
