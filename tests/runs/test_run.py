"""Runs that are killed, interrupted, repeated or computed in other batches come to the same end."""

import multiprocessing
import os
import re
import signal
import threading
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import broca
from broca.engine import Ablation, EngineOptions
from broca.errors import Interrupted, JournalNotWritable
from broca.journal import Journal, read_run, read_runs
from broca.journal.checking import check
from broca.measurement import Plan
from broca.options import SourceOptions
from broca.results.codec import encode
from broca.runs import run as runs
from broca.runs.interrupts import Stopper
from broca.runs.run import chunk_tokens
from broca.runs.setup import claimed
from broca.runs.workspace import Workspace
from broca.tasks import TaskOptions
from broca.testing import tiny_llama

ASKED = {
    "task": "mc_biology", "others": [], "method": "cs-stratified", "rows": 360, "items": 9,
    "response": "margin", "report_items": 40, "verify": False,
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


STAGES = ("searching", "searching", "verifying", "verifying", "writing")
"""In which a run is killed, one after another on one journal."""


def doomed(seconds):
    """Kills this process once it has computed so long, whatever it is doing then."""
    end = time.process_time() + seconds

    def wait():
        while time.process_time() < end:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def test_killed_in_search_verification_and_writing(reference, small_chunks, tmp_path, monkeypatch):
    """SIGKILL, five times on one journal: no row lost or measured twice, the same bytes at the end.

    The moments are drawn; the last one lies between the two files of the result.
    """
    asked = {**small_chunks, "verify": True, "task_options": TaskOptions(limit=50)}
    out, journal = tmp_path / "killed", tmp_path / "killed.sqlite"
    began = {}

    def note(stage, _):
        began.setdefault(re.match(r"\w*", stage)[0], time.process_time())

    whole = broca.localize(reference, **asked, journal=tmp_path / "whole.sqlite", on_progress=note)
    end = time.process_time()
    whole.save(tmp_path / "whole")
    spent = {
        "searching": began["verifying"] - began["searching"],
        "verifying": end - began["verifying"],
    }

    def run(wanted, seconds):
        seen = []

        def kill_within(stage, _):
            if stage.startswith(wanted) and not seen:
                seen.append(stage)
                doomed(seconds)

        result = broca.localize(reference, **asked, journal=journal, on_progress=kill_within)
        if wanted == "writing":  # after the first file got its name
            rename = os.replace
            die = partial(os.kill, os.getpid(), signal.SIGKILL)
            monkeypatch.setattr(os, "replace", lambda *paths: (rename(*paths), die()))
        result.save(out)

    rng = np.random.default_rng(0)
    before = 0
    for stage in STAGES:
        seconds = rng.uniform(0.05, 0.3) * spent.get(stage, 0)
        child = multiprocessing.get_context("fork").Process(target=run, args=(stage, seconds))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        rows, measured = totals(journal)
        assert rows == measured >= before
        before = rows
    assert (out / "result.json").exists()
    assert not (out / "report.html").exists()
    broca.localize(reference, **asked, journal=journal).save(out)
    again = broca.Localization.read(out)
    assert encode(untimed(again)) == encode(untimed(whole))
    assert (out / "report.html").read_text().rstrip().endswith("</html>")
    assert totals(journal) == totals(tmp_path / "whole.sqlite")


def test_first_interrupt_ends_after_the_chunk_and_keeps_it(reference, small_chunks, tmp_path):
    """The signal comes while rows are measured; they are kept, and the next run goes on."""
    path = tmp_path / "j.sqlite"
    seen = []

    def progress(stage, progress):
        if stage.startswith("searching") and progress is not None:
            seen.append(progress.done)
            # rows are added to what is done inside a chunk only
            if len(seen) > 1 and seen[-1] > seen[-2] and not stopper.requested:
                os.kill(os.getpid(), signal.SIGINT)

    with (
        Stopper() as stopper,
        Workspace(path, stopper=stopper) as workspace,
        pytest.raises(Interrupted),
    ):
        broca.localize(reference, **small_chunks, journal=workspace, on_progress=progress)
    assert stopper.requested
    kept, _ = totals(path)
    result = broca.localize(reference, **small_chunks, journal=path)
    whole = broca.localize(reference, **small_chunks)
    assert 0 < kept < result.cost.measured
    assert untimed(result) == untimed(whole)


def require_equal(found, other):
    """Same ranking and selection; effects equal to 1e-6 of the largest."""
    assert other.selected == found.selected
    assert [one.name for one in other.ranking] == [one.name for one in found.ranking]
    effects = [np.array([one.effect for one in result.ranking]) for result in (found, other)]
    assert np.abs(effects[1] - effects[0]).max() <= 1e-6 * np.abs(effects[0]).max()


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"task": "addition", "rows": 180, "response": "accuracy"},
        pytest.param(
            {
                "model": "reference-small",
                "task": "sorting",
                "others": ["capitals"],
                "method": "focus",
                "rows": 700,
                "response": None,
                "items": 20,
            },
            marks=pytest.mark.long,
        ),
    ],
    ids=["margin", "text", "focus"],
)
def test_batch_sizes_change_no_ranking(reference, asked):
    """Neither that of margins nor that of generated answers."""
    found = [
        broca.localize(
            **{"model": reference, **ASKED, **asked},
            engine_options=EngineOptions(token_budget=budget),
        )
        for budget in (None, 700, 90)
    ]
    for other in found[1:]:
        require_equal(found[0], other)
        assert other.selected == found[0].selected


def test_going_on_with_other_batches_changes_no_ranking(reference, small_chunks, tmp_path):
    """A run that was ended in its search, on a machine with less memory afterwards."""
    path = tmp_path / "j.sqlite"

    def progress(stage, progress):
        if stage.startswith("searching") and progress is not None and progress.done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broca.localize(reference, **small_chunks, journal=path, on_progress=progress)
    kept, _ = totals(path)
    assert kept > 0
    less = {**ASKED, "engine_options": EngineOptions(token_budget=90)}
    result = broca.localize(reference, **less, journal=path)
    assert result.cost.measured > kept
    require_equal(broca.localize(reference, **ASKED), result)


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
    assert longer.cost.measured <= 36 + 40
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
    assert second.cost.measured == 40 * (2 if first.selected else 1)  # the other task's alone


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


SENTENCES = broca.Task.from_examples(
    [
        {"prompt": "-", "choices": [f" the {noun} sings.", f" the {noun} sing much."], "label": 0}
        for noun in ("bird", "old man", "cat", "wind", "black dog", "child", "sea", "king")
    ],
    name="sentences",
)


def inputs_of(model, sequences, replaced=None):
    """Inputs of the last output projection of plain transformers, and the logits, by sequence.

    `replaced` takes the place of its second head's slice.
    """
    seen, logits = [], []

    def hook(_module, arguments):
        (states,) = arguments
        seen.append(states[0].clone())
        if replaced is None:
            return None
        states = states.clone()
        states[..., 8:16] = replaced
        return (states,)

    handle = model.model.layers[1].self_attn.o_proj.register_forward_pre_hook(hook)
    with torch.no_grad():
        for tokens in sequences:
            logits.append(model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0])
    handle.remove()
    return seen, logits


def test_donors_and_norms_come_from_all_scored_tokens(tiny):
    """Where the prompt is short the sentences are nearly all: against plain hooks, by hand."""
    bare = tiny_llama()
    with Workspace() as space:
        tasks = claimed(
            tiny, SENTENCES, space.catalog(SourceOptions()), others=(), items=4, seed=0,
        )  # fmt: skip
        located = tasks.places["locate"]["sentences"].tolist()
        run = broca.Run(tiny, tasks, space, ablation=Ablation("mean"), donors=located)
        sentences = [tokens for _, tokens in tasks.scored_tokens(located)]
        assert len(sentences) == 2 * len(located)
        assert all(len(tokens) > 8 for tokens in sentences)
        activations = torch.cat(inputs_of(bare, sentences)[0])  # (tokens, 32)
        column = tiny.components.column("L1H1")
        norm = activations[:, 8:16].norm(dim=-1).mean()
        assert run.norms[column] == pytest.approx(float(norm), rel=1e-5)
        position = int(tasks.places["report"]["sentences"][0])
        answers = run.answers(Plan.crossed(run.mask([column])[None], np.array([position])))[0]
        for request, answer in zip(tasks.bank[position][1].requests, answers, strict=True):
            tokens = (*request.context, *request.continuation)
            _, (logits,) = inputs_of(bare, [tokens], activations[:, 8:16].mean(0))
            chosen = torch.log_softmax(logits, -1)[
                range(len(request.context) - 1, len(tokens) - 1), list(request.continuation)
            ]
            assert answer.value == pytest.approx(float(chosen.sum()), abs=1e-4)


def test_no_row_is_ablated_by_its_own_item(tiny):
    """An item has several donors, one for each request: none of them stands in on that item."""
    with Workspace() as space:
        tasks = claimed(
            tiny, SENTENCES, space.catalog(SourceOptions()), others=(), items=4, seed=0,
        )  # fmt: skip
        located = tasks.places["locate"]["sentences"]
        run = broca.Run(tiny, tasks, space, ablation=Ablation("resample"), donors=located.tolist())
        donors = [position for position, _ in tasks.scored_tokens(located.tolist())]
        masks = np.random.default_rng(0).random((20, len(tiny.components))) < 0.5
        plan = Plan.crossed(masks, located)
        chosen = run._asker.questions(plan, outputs=True).donor_index
        rows = np.repeat(plan.item_index, 2)
        assert len(chosen) == len(rows)
        assert all(donors[donor] != item for donor, item in zip(chosen, rows, strict=True))
        assert len(set(chosen.tolist())) == len(donors)
