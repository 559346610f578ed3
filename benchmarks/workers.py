"""The Ray executor: scaling to two workers, workers that are killed, a node that is cut off.

    python benchmarks/workers.py scaling        # two workers on two cores against one: target 1.8
    python benchmarks/workers.py kills          # a worker killed every few seconds
    python benchmarks/workers.py cut            # two network namespaces, one cut off mid-run; root

The figures are meaningful on an idle machine only. `cut` joins the namespaces by a pair of virtual
interfaces, takes one end down after a third of the rows, and requires the same ranking.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import torch

import broca
from broca.engine import EngineOptions, RunnerSpec
from broca.executors import ray as ray_executor
from broca.executors.executor import Executor
from broca.executors.ray import RayPool, RayRunner, Recipe
from broca.measurement import Plan
from broca.options import ExecutorOptions
from broca.runs import run as runs
from broca.tasks import Catalog, RequestTokenizer

RAY = [sys.executable, "-m", "ray.scripts.scripts", "start"]
NEAR, FAR = "10.77.0.1", "10.77.0.2"
PORT = 6479


def main() -> None:
    """Runs one part and prints its result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["scaling", "kills", "cut", "driver"])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between kills")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--link", default="", help="of `driver`: the interface to take down")
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts = {"scaling": scaling, "kills": kills, "cut": cut, "driver": driver}
    parts[options.part](options)


def scaling(options: argparse.Namespace) -> None:
    """Prints the speed of two workers relative to one worker, with one thread each."""
    model = broca.load("reference", device="cpu")
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    benchmark = Catalog().load("mc_biology", tokenizer)
    bank = [(benchmark, item) for item in benchmark.items[:20]]
    masks = np.random.default_rng(0).random((options.rows // 20, 96)) < 0.1
    parts = np.array_split(masks, 40)
    pieces = [Plan.crossed(part, np.arange(20), response="margin") for part in parts]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for count in (1, 2) * options.repeats:
        # threads are cores / workers by default; Single gives every worker one
        spec = RunnerSpec(model=model)
        with closing(Single(Recipe.of(spec), ExecutorOptions(workers=count))) as pool:
            await_workers(pool, count)
            executor = Executor(RayRunner(pool, spec), bank)
            measure(executor, pieces[:2])
            start = time.perf_counter()
            measure(executor, pieces)
            seconds[count].append(time.perf_counter() - start)
        print(f"{count} worker(s): {seconds[count][-1]:.2f} s", flush=True)
    ratio = np.median(seconds[1]) / np.median(seconds[2])
    print(f"two workers are {ratio:.2f} times as fast as one ({os.cpu_count()} cores)")


def measure(executor: Executor, plans: list[Plan]) -> None:
    """Measures plans on all workers at once."""
    jobs = (executor.job(number, plan) for number, plan in enumerate(plans))
    for answers in executor.runner.stream(jobs, rows=sum(map(len, plans))):
        executor.measurement(plans[answers.number], answers)


class Single(RayPool):
    """A pool whose workers have one thread each, whatever their number."""

    def _start(self) -> None:
        self.recipe = replace(self.recipe, threads=1)
        super()._start()


def kills(options: argparse.Namespace) -> None:
    """Runs a search with and without killing its workers, and compares the results."""
    far = {**settings(options.rows), "executor": "ray", "workers": 2}
    expected = broca.localize("reference", **far)
    ray_executor.ATTEMPTS = 10
    pools = remember_pools()
    over = threading.Event()
    killed: set[int] = set()
    rng = np.random.default_rng(0)

    def killer() -> None:
        while not over.wait(options.every):
            alive = [worker.process for pool in pools for worker in pool.workers]
            alive = [process for process in alive if process not in killed]
            if alive:
                victim = alive[int(rng.integers(len(alive)))]
                with suppress(ProcessLookupError):  # the run has just ended
                    os.kill(victim, signal.SIGKILL)
                    killed.add(victim)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        result = broca.localize("reference", **far)
    finally:
        over.set()
        thread.join()
    require(bool(killed), "no worker was killed: give more --rows, or less --every")
    require(result.ranking == expected.ranking, "another ranking")
    require(result.cost.measured == expected.cost.measured, "rows were lost or measured twice")
    print(
        f"{len(killed)} workers killed: the same ranking from {result.cost.measured} rows, "
        f"{result.cost.wall_s:.0f} s instead of {expected.cost.wall_s:.0f} s"
    )


def cut(options: argparse.Namespace) -> None:
    """Builds the cluster and runs `driver` in it."""
    with namespaces() as (near, far, link), tempfile.TemporaryDirectory() as folder:
        common = ["--num-cpus=1", "--disable-usage-stats", "--object-store-memory=100000000"]
        head = f"--head --node-ip-address={NEAR} --port={PORT} --include-dashboard=false".split()
        join = [f"--address={NEAR}:{PORT}", f"--node-ip-address={FAR}"]
        # the namespaces cannot be reached from outside; a token would have to be set on each node
        home = {"TMPDIR": folder, "RAY_AUTH_MODE": "disabled"}
        try:
            inside(near, [*RAY, *head, *common], quiet=True, **home)
            inside(far, [*RAY, *join, *common], quiet=True, **home)
            words = ["driver", "--rows", str(options.rows), "--link", link]
            inside(near, [sys.executable, __file__, *words], **home)
        finally:
            for name in (near, far):
                end_processes(name)


def driver(options: argparse.Namespace) -> None:
    """Compares a run during which the other namespace is cut off with a run in this process."""
    expected = broca.localize("reference", **settings(options.rows))
    state = {"cut": 0.0, "rows": 0}

    def progress(stage: str, now: object) -> None:
        done, total = getattr(now, "done", 0), getattr(now, "total", 0)
        if stage.startswith("searching") and done * 3 > total and not state["cut"]:
            subprocess.run(["ip", "link", "set", options.link, "down"], check=True)
            state.update(cut=time.monotonic(), rows=done)

    remember_pools()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = broca.localize(
            "reference",
            **settings(options.rows),
            executor="ray",
            address=f"{NEAR}:{PORT}",
            workers=2,
            batch_limit=60.0,
            journal=Path(folder) / "j.sqlite",
            on_progress=progress,
        )
    require(bool(state["cut"]), "the node was never cut off: give more --rows")
    require(result.ranking == expected.ranking, "another ranking")
    end = time.monotonic()
    print(
        f"cut off after {state['rows']} rows and {state['cut'] - start:.0f} s: the same ranking "
        f"after {end - start:.0f} s; undisturbed in one process {expected.cost.wall_s:.0f} s"
    )


@contextmanager
def namespaces():
    """Creates two network namespaces with a link; yields their names and the near interface."""
    near, far = (f"broca-{end}-{os.getpid()}" for end in ("near", "far"))
    link, far_link = f"bn{os.getpid()}", f"bf{os.getpid()}"
    steps = [
        f"netns add {near}",
        f"netns add {far}",
        f"link add {link} netns {near} type veth peer name {far_link} netns {far}",
        f"-n {near} addr add {NEAR}/24 dev {link}",
        f"-n {far} addr add {FAR}/24 dev {far_link}",
        f"-n {near} link set {link} up",
        f"-n {far} link set {far_link} up",
        f"-n {near} link set lo up",
        f"-n {far} link set lo up",
    ]
    try:
        for step in steps:
            done = subprocess.run(["ip", *step.split()], capture_output=True, text=True)
            if done.returncode:
                reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
                sys.exit(f"this machine permits no network namespaces: ip {step}: {reason[0]}")
        yield near, far, link
    finally:
        for name in (near, far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def inside(namespace: str, command: list[str], *, quiet: bool = False, **environment: str) -> None:
    """Runs a command in a namespace."""
    subprocess.run(
        ["ip", "netns", "exec", namespace, *command],
        check=True,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL if quiet else None,
    )


def end_processes(namespace: str) -> None:
    """Kills the processes that still run in a namespace."""
    listing = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True)
    for process in listing.stdout.split():
        try:
            os.kill(int(process), signal.SIGKILL)
        except ProcessLookupError:
            continue


def settings(rows: int) -> dict[str, object]:
    """Returns the arguments of a search of `rows` rows, in chunks of about 80 rows."""
    runs.NOMINAL_S = 0.0
    return {
        "task": "mc_biology", "others": [], "method": "cs-stratified", "rows": rows,
        "items": 20, "response": "margin", "verify": False,
        "engine_options": EngineOptions(token_budget=2048),
    }  # fmt: skip


def remember_pools() -> list[RayPool]:
    """Returns a list that gets every pool opened from now on, once two workers have answered."""
    pools: list[RayPool] = []
    opened = RayPool._open

    def remembered(pool: RayPool) -> None:
        opened(pool)
        await_workers(pool, 2)
        pools.append(pool)

    RayPool._open = remembered  # type: ignore[method-assign]
    return pools


def await_workers(pool: RayPool, count: int) -> None:
    """Waits until all workers have loaded the model."""
    while len(pool.workers) < count:
        for _ in pool.wait():
            pass


def require(holds: bool, what: str) -> None:
    """Exits with code 1 if a condition does not hold."""
    if not holds:
        print(json.dumps({"failed": what}))
        sys.exit(1)


if __name__ == "__main__":
    main()
