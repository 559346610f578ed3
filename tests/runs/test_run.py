"""Killed, interrupted and repeated runs give the same result, with any batch size."""

import json
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from claims import claimed
from dying import die, killed
from engine.test_ablation import inputs_by_hand
from independent import plain_loglikelihood, sliced
from journals import totals
from tiny import tiny_llama

import broca
from broca.engine import Ablation, EngineOptions
from broca.errors import Interrupted
from broca.measurement import Plan
from broca.models.checkpoints import shipped_model_folder
from broca.results.files import encode
from broca.runs import run as runs
from broca.runs.interrupts import Stopper
from broca.store import Journal, read_run, read_runs

ASKED = {
    "task": "mc_biology", "others": [], "method": "cs-stratified", "rows": 360, "items": 9,
    "response": "margin", "report_items": 40, "verify": False,
}  # fmt: skip


def untimed(result):
    """Returns a result without its times."""
    return replace(result, cost=replace(result.cost, wall_s=0.0))


@pytest.mark.long
def test_a_run_that_was_killed_between_its_files_writes_them_again(
    reference, tmp_path, monkeypatch
):
    """After a SIGKILL between both files of a result the same call measures nothing anew."""
    out, journal = tmp_path / "out", tmp_path / "killed.sqlite"
    rename = os.replace

    def run():
        result = broca.localize(reference, **ASKED, journal=journal)
        monkeypatch.setattr(os, "replace", lambda *paths: (rename(*paths), die()))
        result.save(out)

    killed(run)
    assert (out / "result.json").exists()
    assert not (out / "report.html").exists()
    before, first = totals(journal), broca.Localization.read(out)
    broca.localize(reference, **ASKED, journal=journal).save(out)
    assert encode(untimed(broca.Localization.read(out))) == encode(untimed(first))
    assert (out / "report.html").read_text().rstrip().endswith("</html>")
    assert totals(journal) == before


@pytest.mark.long
def test_first_interrupt_ends_after_the_chunk_and_keeps_it(reference, tmp_path, monkeypatch):
    """A run goes on with the rows that were measured when the signal came, in other batches."""
    monkeypatch.setattr(runs, "NOMINAL_S", 0.0)  # some dozens of rows between two commits
    path, wide = tmp_path / "j.sqlite", EngineOptions(token_budget=512)
    done_rows = []

    def progress(stage, progress):
        if stage.startswith("searching") and progress is not None:
            done_rows.append(progress.done)
            # done rows increase only within a chunk
            if len(done_rows) > 1 and done_rows[-1] > done_rows[-2] and not stopper.requested:
                os.kill(os.getpid(), signal.SIGINT)

    with (
        Stopper() as stopper,
        broca.Workspace(path, stopper=stopper) as space,
        pytest.raises(Interrupted),
    ):
        broca.localize(reference, **ASKED, engine_options=wide, journal=space, on_progress=progress)
    kept_rows = totals(path)["rows"]
    smaller = {**ASKED, "engine_options": EngineOptions(token_budget=90)}
    result = broca.localize(reference, **smaller, journal=path)
    assert 0 < kept_rows < result.cost.measured
    whole = broca.localize(reference, **ASKED)
    assert result.selected == whole.selected
    assert [line.name for line in result.ranking] == [line.name for line in whole.ranking]
    effects, others = ([line.effect for line in of.ranking] for of in (whole, result))
    assert others == pytest.approx(effects, abs=1e-6 * np.abs(effects).max())


def test_a_second_search_reuses_the_first_ones_rows(reference, tmp_path):
    """An equal run measures nothing, and a longer run only its new rows."""
    path = tmp_path / "j.sqlite"
    first, again = (broca.localize(reference, **ASKED, journal=path) for _ in range(2))
    assert untimed(again) == untimed(first)
    assert totals(path)["rows"] == first.cost.measured
    longer = broca.localize(reference, **{**ASKED, "rows": 396}, journal=path)
    assert longer.cost.rows == 396
    # new are 4 masks on 9 items, and the verification of another selection
    assert longer.cost.measured <= 36 + 40
    assert totals(path)["rows"] == first.cost.measured + longer.cost.measured
    with Journal(path, read_only=True) as journal:
        costs = [run.rows for run in read_runs(journal)]
        rows = read_run(journal, 1)
    assert costs == [first.cost.measured, longer.cost.measured]
    assert len(rows.responses) == 360
    assert len(np.unique(rows.masks, axis=0)) == 40


def test_resampled_donors_depend_on_items_not_places(reference, tmp_path):
    """Another task moves the items in the bank, but their rows are the same."""
    path = tmp_path / "j.sqlite"
    options = {**ASKED, "rows": 90, "ablation": "resample"}
    first = broca.localize(reference, **options, journal=path)
    second = broca.localize(reference, **{**options, "others": ["sorting"]}, journal=path)
    assert second.ranking == first.ranking
    assert second.cost.measured == 40 * (2 if first.selected else 1)  # rows of the other task


def scores_of(model, journal=None):
    """Returns the score of a model's intact heads on a task, with a journal or without one."""
    with broca.Workspace(journal) as space:
        tasks = claimed(model, "mc_biology", others=[], items=100, seed=0, limit=30)
        return broca.Run(model, tasks, space).scores([])


@pytest.mark.long
def test_rows_of_other_settings_are_not_taken_from_a_journal(tmp_path):
    """A changed config.json gives the scores of a new journal; the former one, its own again."""
    folder, journal = tmp_path / "model", tmp_path / "j.sqlite"
    shutil.copytree(shipped_model_folder("reference-small"), folder)
    first = scores_of(broca.load(str(folder), device="cpu"), journal)
    stored = (folder / "config.json").read_text()
    changed = json.loads(stored)
    changed["rope_parameters"]["rope_theta"] = 50.0
    (folder / "config.json").write_text(json.dumps(changed))
    model = broca.load(str(folder), device="cpu")
    assert scores_of(model, journal) == scores_of(model) != first
    (folder / "config.json").write_text(stored)
    before = totals(journal)
    assert scores_of(broca.load(str(folder), device="cpu"), journal) == first
    assert totals(journal) == before


SENTENCES = broca.Task.from_examples(
    [
        {"prompt": "-", "choices": [f" the {noun} sings.", f" the {noun} sing much."], "label": 0}
        for noun in ("bird", "old man", "cat", "wind", "black dog", "child", "sea", "king")
    ],
    name="sentences",
)


def test_donors_and_norms_come_from_all_scored_tokens(tiny):
    """Mean and norm of a head are taken over all tokens of the sentences, as with plain hooks."""
    bare = tiny_llama()
    tasks = claimed(tiny, SENTENCES, others=(), items=4, seed=0)
    located = tasks.places["locate"]["sentences"].tolist()
    sentences = [tokens for _, tokens in tasks.scored_tokens(located)]
    assert len(sentences) == 2 * len(located)
    assert all(len(tokens) > 8 for tokens in sentences)
    inputs = [inputs_by_hand(bare, tokens)[1] for tokens in sentences]
    activations = torch.cat(inputs)  # (tokens, 32)
    column = tiny.components.column("L1H1")
    position = int(tasks.places["report"]["sentences"][0])
    with broca.Workspace() as space:
        run = broca.Run(tiny, tasks, space, ablation=Ablation("mean"), donors=located)
        norm = activations[:, 8:16].norm(dim=-1).mean()
        assert run.norms()[column] == pytest.approx(float(norm), rel=1e-5)
        answers = run.answers(Plan.crossed(run.mask([column])[None], np.array([position])))[0]
    for request, answer in zip(tasks.bank[position][1].requests, answers, strict=True):
        with sliced(bare.model.layers[1].self_attn.o_proj, 8, 16, activations[:, 8:16].mean(0)):
            value, _ = plain_loglikelihood(bare, request.context, request.continuation)
        assert answer.value == pytest.approx(value, abs=1e-4)
