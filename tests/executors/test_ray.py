"""Workers of Ray give the answers of the current process, also when workers die or hang."""

import os
import pickle
import signal
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import psutil
import pytest
import torch
from clusters import ray_on
from direct import DirectExecutor
from journals import totals
from tiny import tiny_gated

import broca
from broca.engine import Ablation, Engine, EngineOptions, Job, RunnerSpec, donor_activations
from broca.errors import BadInput, BadLogits, ExecutorFailed, Interrupted, UnknownName
from broca.executors import ray as ray_executor
from broca.executors.executor import Executor
from broca.executors.ray import RayPool, RayRunner, Recipe, Worker, workers_of
from broca.measurement import Plan
from broca.runs.interrupts import Stopper
from broca.store import Journal
from broca.tasks import Request

pytestmark = pytest.mark.long

ASKED = {
    "task": "mc_biology", "others": [], "method": "cs-stratified", "rows": 90, "items": 9,
    "response": "margin", "verify": False, "engine_options": EngineOptions(token_budget=512),
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """Ray on two cores for this file."""
    with ray_on(cores=2):
        yield


@pytest.fixture(scope="module")
def plan():
    """Four masks on twelve items."""
    return Plan.crossed(np.random.default_rng(0).random((4, 96)) < 0.1, np.arange(12))


@pytest.fixture(scope="module")
def pool(cluster, reference):
    """Two workers with `reference`."""
    pool = RayPool(Recipe.of(RunnerSpec(model=reference)), broca.ExecutorOptions(workers=2))
    yield pool
    pool.close()
    assert not pool.workers


def await_workers(pool, count):
    """Waits until that many workers can answer."""
    end = time.monotonic() + 600  # importing torch takes long on a busy machine
    while len(pool.workers) < count:
        assert time.monotonic() < end, "no worker came"
        for _ in pool.wait():
            raise AssertionError("nothing was asked")


def margins(runner, bank, plan):
    """Returns the margins of a plan's rows."""
    return DirectExecutor(runner, bank, response="margin").run(plan).responses


@pytest.mark.parametrize("response", ["accuracy", "margin", "probability"])
def test_answers_are_those_of_this_process(pool, reference, bank, plan, response):
    """Responses, texts and gradients equal those of the current process, to rounding."""
    spec = RunnerSpec(model=reference)
    local = DirectExecutor(Engine(reference), bank, response=response)
    far = DirectExecutor(RayRunner(pool, spec), bank, response=response)
    np.testing.assert_allclose(far.run(plan).responses, local.run(plan).responses, atol=1e-5)
    if response == "accuracy":
        texts = [[getattr(a[0], "text", None) for a in e.answers(plan)] for e in (far, local)]
        assert texts[0] == texts[1]
    else:
        requested = replace(plan, gradients=True)
        expected, gradients = local.run(requested).gradients, far.run(requested).gradients
        np.testing.assert_allclose(gradients, expected, atol=1e-4 * np.abs(expected).max())


def test_donors_reach_the_workers(pool, reference, bank, plan):
    """Workers have the donors of this process, each for its own jobs."""
    prompts = [item.requests[0].context for _, item in bank]
    donors = donor_activations(reference, prompts, Ablation("mean"))
    plain = RunnerSpec(model=reference)
    mean = replace(plain, key="mean", donors=tuple(donors[point] for point in reference.points))
    seen = []
    for spec in (plain, mean, plain):
        ablation = Ablation("mean" if spec.donors else "zero")
        options = {"response": "margin", "ablation": ablation}
        expected = DirectExecutor(spec.engine(), bank, **options).run(plan).responses
        responses = DirectExecutor(RayRunner(pool, spec), bank, **options).run(plan).responses
        np.testing.assert_allclose(responses, expected, atol=1e-5)
        seen.append(responses)
    assert not np.allclose(seen[0], seen[1], atol=1e-3)


def test_a_killed_worker_costs_nothing_but_time(pool, reference, bank, plan):
    """After a SIGKILL of a worker the results are the same, and another worker replaces it."""
    await_workers(pool, 2)
    victim = pool.workers[0].process
    asked = replace(plan, response="margin")
    parts = [asked.part(np.arange(first, len(plan), 8)) for first in range(8)]
    responses = np.full(len(plan), np.nan)
    executor = Executor(RayRunner(pool, RunnerSpec(model=reference)), bank)
    jobs = (executor.job(number, part) for number, part in enumerate(parts))
    for count, answers in enumerate(executor.runner.stream(jobs, rows=len(plan))):
        if count == 0:
            os.kill(victim, signal.SIGKILL)
        assert np.isnan(responses[answers.number :: 8]).all()
        measured = executor.measurement(parts[answers.number], answers)
        responses[answers.number :: 8] = measured.responses
    np.testing.assert_allclose(responses, margins(Engine(reference), bank, plan), atol=1e-5)
    await_workers(pool, 2)
    assert victim not in [worker.process for worker in pool.workers]


def test_a_hanging_worker_is_replaced(pool, reference, bank, plan, monkeypatch):
    """A worker stopped for longer than the limit is replaced, and its batch is answered."""
    await_workers(pool, 2)
    victim = pool.idle[-1].loaded.process  # the next worker to get a batch
    os.kill(victim, signal.SIGSTOP)
    monkeypatch.setattr(pool, "options", replace(pool.options, batch_limit=8.0))
    try:
        responses = margins(RayRunner(pool, RunnerSpec(model=reference)), bank, plan)
    finally:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGCONT)
    np.testing.assert_allclose(responses, margins(Engine(reference), bank, plan), atol=1e-5)
    assert victim not in [worker.process for worker in pool.workers]


def test_idle_workers_that_died_together_cost_one_attempt(pool, reference, bank, plan, monkeypatch):
    """A batch that no living worker had is not lost once for each of the dead."""
    await_workers(pool, 2)
    monkeypatch.setattr(ray_executor, "ATTEMPTS", 2)
    for worker in pool.workers:
        os.kill(worker.process, signal.SIGKILL)
    responses = margins(RayRunner(pool, RunnerSpec(model=reference)), bank, plan)
    np.testing.assert_allclose(responses, margins(Engine(reference), bank, plan), atol=1e-5)


def test_a_batch_that_always_fails_ends_the_run(pool, reference, monkeypatch):
    """After the stated number of attempts the run fails in one line; other answers are returned."""
    await_workers(pool, 2)  # so that the good batch runs beside the bad one
    ones, zero = np.ones((1, 96), np.float32), np.zeros(1, np.intp)
    good = Request("loglikelihood", (5, 6, 7), (8,))
    bad = Request("loglikelihood", (5, -7, 7), (8,))  # no token, which nothing refuses before
    monkeypatch.setattr(ray_executor, "ATTEMPTS", 2)
    jobs = [Job(n, ones, zero, zero, ((request,),)) for n, request in enumerate((bad, good))]
    stream = RayRunner(pool, RunnerSpec(model=reference)).stream(jobs, rows=2)
    assert next(stream).number == 1
    with pytest.raises(ExecutorFailed, match=r"1 rows was lost 2 times.*IndexError"):
        next(stream)


def test_localize_gives_the_same_with_ray(cluster, pool, reference, tmp_path):
    """Ray gives the same ranking and costs, and the journal serves a local run afterwards."""
    pool.close()  # frees its cores
    local = broca.localize(reference, **ASKED)
    path = tmp_path / "j.sqlite"
    remote = broca.localize(reference, **ASKED, executor="ray", workers=2, journal=path)
    assert remote.ranking == local.ranking
    assert replace(remote.cost, wall_s=local.cost.wall_s) == local.cost
    assert broca.localize(reference, **ASKED, journal=path).ranking == local.ranking
    assert totals(path)["rows"] == local.cost.measured


def test_an_interrupt_keeps_what_is_there_and_leaves_no_worker(
    cluster, pool, reference, monkeypatch, tmp_path
):
    """Ctrl+C while workers are busy keeps the measured rows, and every worker process ends."""
    pool.close()
    processes = []
    opened = RayPool._open

    def remembered(self):
        opened(self)
        await_workers(self, 2)
        processes.extend(psutil.Process(worker.process) for worker in self.workers)

    monkeypatch.setattr(RayPool, "_open", remembered)

    write = Journal.write

    def pressed_once(self, *, role, **rows):
        if processes and role == "search":
            monkeypatch.setattr(Journal, "write", write)  # a second would end the run
            os.kill(os.getpid(), signal.SIGINT)
        return write(self, role=role, **rows)

    monkeypatch.setattr(Journal, "write", pressed_once)

    path = tmp_path / "j.sqlite"
    ray_here = broca.ExecutorOptions(executor="ray", workers=2)
    with (
        Stopper() as stopper,
        broca.Workspace(path, stopper=stopper, executor=ray_here) as workspace,
        pytest.raises(Interrupted),
    ):
        broca.localize(reference, **ASKED, journal=workspace)
    assert totals(path)["rows"] > 0
    ended, left = psutil.wait_procs(processes, timeout=30)
    assert (len(ended), len(left)) == (2, 0)


def test_other_weights_are_refused(cluster, pool, reference):
    """A worker that loads other weights under the same name is refused before it measures."""
    pool.close()
    spec = replace(Recipe.of(RunnerSpec(model=reference)), identity="0" * 32)
    with pytest.raises(ExecutorFailed, match="other weights, settings or code of 'reference'"):
        RayPool(spec, broca.ExecutorOptions(workers=1))


@pytest.mark.parametrize(
    ("resources", "options", "expected"),
    [
        ({"CPU": 8}, {}, (8, 0, "cpu", None, 1)),
        ({"CPU": 8}, {"workers": 2}, (2, 0, "cpu", None, 4)),
        ({"CPU": 64, "GPU": 8}, {}, (8, 1, None, None, 1)),
        ({"CPU": 64, "GPU": 8}, {"gpus_per_worker": 4}, (2, 4, None, "auto", 1)),
        ({"CPU": 64, "GPU": 8}, {"gpus_per_worker": 0.5}, (16, 0.5, None, None, 1)),
        ({"CPU": 64, "GPU": 8}, {"gpus_per_worker": 0, "workers": 64}, (64, 0, "cpu", None, 1)),
    ],
)
def test_workers_fill_the_cluster(reference, resources, options, expected):
    """Workers fill the cluster; large models are spread, and more than fit are refused."""
    chosen = broca.ExecutorOptions(**options)
    count, gpus, recipe = workers_of(resources, chosen, Recipe("m", ""))
    loading = recipe.loading
    assert (count, gpus, loading.device, loading.device_map, recipe.threads) == expected
    with pytest.raises(BadInput, match="the cluster has room for"):
        workers_of(resources, replace(chosen, workers=65), Recipe("m", ""))


def test_errors_of_broca_come_back_from_a_worker_as_they_are(monkeypatch):
    """An unknown model and infinite logits are replies, and keep their class and fields."""
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # those of this process
    missing = pickle.loads(pickle.dumps(Worker(Recipe("./nowhere", "")).load()))
    assert isinstance(missing, UnknownName)
    broken = tiny_gated("broken")
    broken.model.lm_head.weight.data[3] = float("inf")
    recipe = Recipe.of(RunnerSpec(model=broken))
    worker = Worker(replace(recipe, loading=replace(recipe.loading, device="cpu")))
    assert worker.load().identity == broken.identity  # sent as an object
    zero = np.zeros(1, np.intp)
    request = Request("loglikelihood", (5, 6, 7), (8,))
    job = Job(3, np.ones((1, 8), np.float32), zero, zero, ((request,),))
    reply = worker.answer(job, ("", ()))
    error = pickle.loads(pickle.dumps(reply))
    assert isinstance(error, BadLogits)
    assert (str(error), error.job, error.row) == (str(reply), 3, 0)
