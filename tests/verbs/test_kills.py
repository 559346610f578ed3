"""A verb that measures is killed by SIGKILL and goes on: the result is the undisturbed one."""

import multiprocessing
import signal
import sqlite3
import time

import pytest
from verbs.measuring import VERBS, measure

from broca.journal import Journal
from broca.journal.checking import check
from broca.runs import run

PRELOADED = [
    "broca.verbs.stress", "broca.verbs.atlas", "lm_eval.tasks", "sklearn.linear_model",
    "transformers.core_model_loading", "transformers.models.llama.modeling_llama",
]  # fmt: skip
"""What takes seconds to import."""


@pytest.fixture(autouse=True)
def _commits_are_frequent(monkeypatch):
    """What `measure` sets holds for this file alone."""
    monkeypatch.setattr(run, "NOMINAL_S", 0.0)


@pytest.fixture(scope="module")
def processes():
    """Forks processes of a server that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, "verbs.measuring"])
    return context


def batches(path):
    """Batches that a journal holds so far; 0 while there is none."""
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as journal:
            return journal.execute("SELECT count(*) FROM batches").fetchone()[0]
    except sqlite3.OperationalError:  # its tables are being made
        return 0


def totals(path):
    """Batches, rows and vectors of a sound journal, and what its batches say was measured."""
    with Journal(path, read_only=True) as journal:
        assert [finding.wrong for finding in check(journal) if not finding.passed] == []
        ((count, measured),) = journal.query("SELECT count(*), sum(rows) FROM batches")
        ((rows,),) = journal.query("SELECT count(*) FROM rows")
        ((outputs,),) = journal.query("SELECT count(*) FROM outputs")
        ((vectors,),) = journal.query("SELECT count(*) FROM vectors")
    return {"batches": count, "measured": measured, "kept": (rows, outputs, vectors)}


@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_verb_goes_on_where_it_was(processes, tmp_path, verb):
    """Killed twice; nothing that was kept is measured again, and the result is the same."""
    undisturbed, journal = tmp_path / "undisturbed.sqlite", tmp_path / "killed.sqlite"
    expected = measure(verb, undisturbed)
    whole = totals(undisturbed)
    kept = 0
    for share in (3, 2):
        wanted = max(kept + 1, whole["batches"] // share)
        process = processes.Process(target=measure, args=(verb, journal))
        process.start()
        while process.is_alive() and batches(journal) < wanted:
            time.sleep(0.001)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert kept < totals(journal)["batches"] < whole["batches"]
        kept = totals(journal)["batches"]
    assert measure(verb, journal) == expected
    assert totals(journal) == whole
