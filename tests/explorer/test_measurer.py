"""Live scores: rows of a run, each measured once, with intervals."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Event

import numpy as np
import pytest

import broca
from broca.engine import Progress
from broca.errors import BadInput, BrocaError
from broca.explorer.measurer import ITEMS, RANDOM_SETS, WAITING, Measurer
from broca.options import RunOptions, TaskOptions

PAIRS = [(f"sort {b} {a} =", f" {a} {b}") for a, b in product("abcd", "efgh")]


@pytest.fixture(scope="module")
def measurer(planted):
    """A measurer on a copy of the planted model."""
    page_measurer = Measurer(
        planted.copy(), RunOptions(), verify=None, tasks=("sorting", "reversing")
    )
    yield page_measurer
    page_measurer.close()


def test_a_score_has_its_drop_and_interval(measurer):
    """The drop is the difference of the scores, lies in its interval, and is 0 for an empty set."""
    empty = measurer.score("sorting", [])
    assert (empty.drop.value, empty.intact, empty.items) == (0.0, empty.score, ITEMS)
    layer = measurer.score("sorting", [f"L0H{head}" for head in range(16)])
    assert layer.drop.value == pytest.approx(layer.intact - layer.score)
    assert layer.drop.low <= layer.drop.value <= layer.drop.high
    assert layer.drop.value > 0.3


def test_a_score_is_that_of_the_ablated_model(measurer, planted):
    """A score is the share of items that the model answers correctly within `ablated`."""
    names = [f"L0H{head}" for head in range(8)]
    score = measurer.score("sorting", names)
    run = measurer._runs["sorting"]
    positions = run.tasks.places["report"]["sorting"]
    model, right = planted.copy(), 0
    with model.ablated(names):
        for position in positions:
            _, item = run.tasks.bank[int(position)]
            text = model.generate(item.prompt, max_new_tokens=item.requests[0].max_new_tokens)
            right += text.strip().split("\n")[0].strip() == item.target.strip()
    assert score.score == pytest.approx(right / len(positions))


def test_a_gate_in_between_and_a_gate_of_one(measurer):
    """Gates of 1 lose nothing, half-closed ones no more than closed ones; slopes say so too."""
    names = [f"L0H{head}" for head in range(16)]
    assert measurer.score("sorting", names, 1.0).drop.value == 0
    half, off = (measurer.score("sorting", names, scale).score for scale in (0.5, 0.0))
    assert half >= off
    slopes = measurer.slopes("sorting", [])
    assert len(slopes) == len(measurer._model.components)
    assert min(slopes.values()) < 0


def test_random_sets_have_the_kinds_of_the_real_set():
    """They have as many heads and blocks, each counted once; tasks that are named twice are one."""
    model, plans = broca.load("planted", components="heads+mlp"), []
    page = Measurer(model, RunOptions(), verify=None, tasks="sorting,sorting")
    page._scaled = lambda run, _: lambda plan: plans.append(plan) or run.measure(plan)
    scores = page.random_scores("sorting", ["L0H1", "L1M", "L1M", "L2M"])
    blocks = np.array([name.endswith("M") for name in model.components.names])
    assert {(mask[blocks].sum(), mask[~blocks].sum()) for mask in plans[0].masks} == {(2, 1)}
    assert len(scores) == RANDOM_SETS
    assert page.tasks() == ("sorting",)
    page.close()


def test_a_metric_is_the_first_task_s_and_added_files_are_no_controls(planted):
    """Other tasks keep their metrics; a file is on the page, and in no other task's verdict."""
    task_options = TaskOptions(metric="contains")
    asked, given = {}, broca.Task.from_examples(PAIRS, name="mine")
    page = Measurer(
        planted.copy(),
        RunOptions(task_options=task_options),
        verify=lambda *_, **options: asked.update(options),
        tasks=(given, "sorting", "mc_biology"),
    )
    page.add("five.jsonl", '{"prompt": "a", "answer": " b"}\n' * 5)
    assert page.tasks() == ("mine", "sorting", "mc_biology", "five.jsonl")
    for task, metric in (("mine", "contains"), ("mc_biology", None)):
        page.score(task, [])
        assert page._runs[task].options.task_options.metric == metric
        page.verify(task, ["L0H0"])
        assert "five.jsonl" not in asked["others"]
        assert asked["run_options"].task_options.metric == metric
    assert page.text(["L0H0"], 1.0).divergence == 0
    page.close()


def test_a_visitor_s_examples_have_names_that_mean_nothing_else(planted, tmp_path):
    """Examples that are named like a file are asked, and the file is not read."""
    (tmp_path / "own.jsonl").write_text("unreadable")
    page = Measurer(planted.copy(), RunOptions(), verify=broca.verify, tasks="sorting")
    lines = [f'{{"prompt": "{prompt}", "answer": "{answer}"}}' for prompt, answer in PAIRS]
    for name in ("own.jsonl", "sorting,own.jsonl", "data:own.jsonl"):
        name = page.add(name.replace("own", str(tmp_path / "own")), "\n".join(lines))
        assert page.example(name) in PAIRS
        assert page.score(name, ["L0H0"]).task == name
    for name in ("capitals", "own.yaml", "a" * 200 + ".jsonl"):
        with pytest.raises(BadInput, match=r"name the file NAME\.jsonl"):
            page.add(name, lines[0])
    with pytest.raises(BadInput, match="at most 1500 characters"):
        page.add("long.jsonl", json.dumps({"prompt": "a" * 1500, "answer": "b"}))
    page.close()


def test_what_cannot_be_measured_is_refused(measurer):
    """A task that is not on the page and an unknown component are refused."""
    for question in (measurer.score, measurer.verify):
        with pytest.raises(BadInput, match="task 'capitals' is not on this page"):
            question("capitals", ["L0H1"])
    for question in (measurer.score, measurer.random_scores):
        with pytest.raises(BrocaError, match="L9H9"):
            question("sorting", ["L9H9"])
    assert measurer.tasks() == ("sorting", "reversing")
    assert measurer.busy[0] == ""


def test_a_running_job_tells_its_rows_and_the_queue_has_an_end(measurer):
    """What the page shows of a running job has its stage and the rows of it.

    Beyond the waiting measurements a further one is refused at once; the others are answered.
    """
    running, go_on = Event(), Event()
    with ThreadPoolExecutor(WAITING + 1) as pool:
        pool.submit(measurer._do, "verifying", lambda: (running.set(), go_on.wait(60)))
        assert running.wait(60)
        measurer._hear("random sets", Progress(30, 1200, 9))
        assert measurer.busy[0] == "verifying: random sets, 30 of 1,200 rows"
        scores = [pool.submit(measurer.score, "sorting", []) for _ in range(WAITING)]
        while measurer.busy[1] < WAITING:
            time.sleep(0.01)
        with pytest.raises(BadInput, match="busy with other measurements"):
            measurer.score("sorting", [])
        go_on.set()
        assert {score.result(timeout=60).drop.value for score in scores} == {0.0}


def test_closing_ends_what_runs_and_what_waits(planted):
    """A running job ends after its batch, and those that wait or come later are refused."""
    page = Measurer(planted.copy(), RunOptions(), verify=None, tasks="sorting")
    running, go_on, run = Event(), Event(), page._run
    page._run = lambda task: (running.set(), go_on.wait(60), run(task))[2]
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(page.score, "sorting", ["L0H1"]), pool.submit(page.text, ["L0H1"])]
        assert running.wait(60)
        closing = pool.submit(page.close)
        while not page._closed:
            time.sleep(0.01)
        go_on.set()
        closing.result(timeout=60)
        for job in (*jobs, pool.submit(page.score, "sorting", [])):
            with pytest.raises(BrocaError, match="the page is closing"):
                job.result(timeout=60)
