"""Kills runs by SIGKILL at random moments; each resumed run must equal the undisturbed one.

    python benchmarks/kills.py --kills 50

One process loads the model and forks; each child runs the whole path (search, proof, report) on a
journal and is killed. After every kill the journal is checked; when a run ends, its result is
compared with the undisturbed one, and the next run begins a new journal.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import broca
from broca.engine import EngineOptions
from broca.results.files import encode
from broca.runs import run as runs
from broca.store import Journal
from broca.tasks import TaskOptions

STAGES = ("building", "scoring", "searching", "verifying", "writing")
"""Stages of a run, in order; kills are spread evenly over all but the first."""

SEARCH = {
    "task": "mc_biology", "others": [], "method": "cs-stratified", "rows": 300, "items": 10,
    "response": "margin",
    "task_options": TaskOptions(limit=80),
    "engine_options": EngineOptions(token_budget=512),
}  # fmt: skip


def main() -> None:
    """Runs the campaign and prints the numbers of kills and of ended runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs.NOMINAL_S = 0.0  # many commits in a short run
    model = broca.load("reference", device="cpu")
    _ = model.fingerprint
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected, spent = undisturbed(model, place)
        print(f"undisturbed: {totals(place / 'whole.sqlite')} rows; seconds by stage: {spent}")
        stages: Counter[str] = Counter()
        ended = journal = before = 0
        while sum(stages.values()) < options.kills:
            file, out = place / f"{journal}.sqlite", place / f"out{journal}"
            target = STAGES[1 + int(rng.integers(4))]
            stage = killed(model, file, out, target, float(rng.uniform(0, spent[target])))
            rows = totals(file)
            require(rows >= before, f"{before - rows} committed rows were lost")
            before = rows
            if stage is None:  # the run ended before the kill
                same(out, expected)
                ended, journal, before = ended + 1, journal + 1, 0
                continue
            stages[stage] += 1
            if (out / "result.json").exists():  # the file is written whole or not at all
                equal(out, expected)
            print(f"kill {sum(stages.values())} while {stage}: {rows} rows kept", flush=True)
            if rng.random() < 0.15:
                work(model, file, out)
                same(out, expected)
                require(totals(file) == totals(place / "whole.sqlite"), "other rows than whole")
                ended, journal, before = ended + 1, journal + 1, 0
        print(
            f"{sum(stages.values())} kills: {dict(stages)}; {ended} runs ended, all as undisturbed"
        )


def work(model: broca.GatedModel, journal: Path, out: Path, stage_file: Path | None = None) -> None:
    """Runs the whole path and writes each stage to a file when it begins."""

    def progress(stage: str, _: object) -> None:
        if stage_file is not None and named(stage) in STAGES:
            stage_file.write_text(named(stage))

    result = broca.localize(model, **SEARCH, journal=journal, on_progress=progress)
    if stage_file is not None:
        stage_file.write_text("writing")
    result.save(out)


def named(stage: str) -> str:
    """Returns the first word of a stage."""
    return stage.split()[0].rstrip(":")


def undisturbed(
    model: broca.GatedModel, place: Path
) -> tuple[broca.Localization, dict[str, float]]:
    """Returns the result to compare with, and the seconds that each stage takes."""
    times: dict[str, float] = {}

    def progress(stage: str, _: object) -> None:
        times.setdefault(named(stage), time.monotonic())

    result = broca.localize(model, **SEARCH, journal=place / "whole.sqlite", on_progress=progress)
    times["writing"] = time.monotonic()
    result.save(place / "whole")
    begins = [times[stage] for stage in STAGES] + [time.monotonic()]
    return result, {
        stage: round(end - begin, 3)
        for stage, begin, end in zip(STAGES, begins, begins[1:], strict=False)
    }


def killed(
    model: broca.GatedModel, journal: Path, out: Path, target: str, delay: float
) -> str | None:
    """Kills a run `delay` seconds into a stage; returns the stage, None if the run had ended."""
    stage_file = journal.with_suffix(".stage")
    stage_file.write_text("")
    child = multiprocessing.get_context("fork").Process(
        target=work, args=(model, journal, out, stage_file)
    )
    child.start()
    while child.is_alive() and stage_file.read_text() != target:
        time.sleep(0.002)
    time.sleep(delay)
    stage = stage_file.read_text()
    child.kill()
    child.join()
    if child.exitcode == -signal.SIGKILL:
        return stage or "building"
    require(child.exitcode == 0, f"a child ended with {child.exitcode}")
    return None


def totals(path: Path) -> int:
    """Returns the number of a journal's rows and vectors, each of which must be there once."""
    if not path.exists() or not path.stat().st_size:
        return 0
    with Journal(path) as journal:  # reading a line compares its checksum
        for table in ("conditions", "components", "items", "masks", "runs", "plans", "contents"):
            list(journal.lines(table))
        keys = [
            (batch.kind, batch.condition, key)
            for batch in journal.lines("batches")
            for key in np.frombuffer(batch.keys, "<i8").tolist()
        ]
    require(len(keys) == len(set(keys)), "a row is there twice")
    return len(keys)


def equal(out: Path, expected: broca.Localization) -> None:
    """Requires the result in a folder to equal the undisturbed one except for its time."""
    resumed = broca.Localization.read(out)
    untimed = [
        replace(result, cost=replace(result.cost, wall_s=0.0)) for result in (resumed, expected)
    ]
    require(encode(untimed[0]) == encode(untimed[1]), "the result differs")


def same(out: Path, expected: broca.Localization) -> None:
    """Requires a folder to have the undisturbed run's result and a complete report."""
    equal(out, expected)
    require(
        (out / "report.html").read_text().rstrip().endswith("</html>"), "the report is cut short"
    )


def require(held: bool, otherwise: str) -> None:
    """Ends the campaign if a condition does not hold."""
    if not held:
        sys.exit(f"FAILED: {otherwise}")


if __name__ == "__main__":
    main()
