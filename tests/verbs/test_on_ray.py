"""Every verb that measures gives the same result on Ray's workers as in this process."""

import json
import subprocess
import sys
import time

import psutil
import pytest
from clusters import ray_on
from independent import zeroed_by_hand
from verbs.measuring import NARROW, VERBS, untimed

import broca

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """A workspace whose rows are measured by one Ray worker for each model."""
    journal = tmp_path_factory.mktemp("ray") / "j.sqlite"
    on_ray = broca.ExecutorOptions(executor="ray", workers=1)
    with ray_on(cores=3), broca.Workspace(journal, executor=on_ray) as workspace:
        yield workspace


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("stress", "compare")])
def test_a_verb_gives_the_same_on_ray(workers, small, tmp_path, verb):
    """The results are equal except for the times."""
    remote = VERBS[verb](small, workers, tmp_path / "remote")
    local = VERBS[verb](small, tmp_path / "local.sqlite", tmp_path / "local")
    assert untimed(remote) == untimed(local)


def test_models_have_workers_of_their_own_or_take_turns(workers, small):
    """`compare` is equal on Ray, also where the cluster has a core for one worker alone."""
    lost = zeroed_by_hand(small.model, [(0, 0)], scale=0.5)
    models = [small, broca.load(lost, small.tokenizer, name="lost")]
    arguments = {
        "tasks": "capitals", "heads": "L0H1+L1H2", "rows": 120, "items": 12, "limit": 20,
        "engine_options": NARROW,
    }  # fmt: skip
    local = broca.compare(*models, **arguments)
    assert broca.compare(*models, **arguments, journal=workers) == local
    with broca.Workspace(executor=broca.ExecutorOptions(executor="ray", workers=1)) as workspace:
        assert broca.compare(*models, **arguments, journal=workspace) == local


def test_stress_gives_the_same_on_ray(workers, small, tmp_path):
    """`stress` gives the same verdict and ranks on Ray, and transfers within 1e-4."""
    remote, local = (VERBS["stress"](small, journal, tmp_path) for journal in (workers, None))
    assert (remote.verdict, remote.heads) == (local.verdict, local.heads)
    assert [line.rank for line in remote.necessity] == [line.rank for line in local.necessity]
    transfers = [[shift.transfer.value for shift in result.shifts] for result in (remote, local)]
    assert transfers[0] == pytest.approx(transfers[1], abs=1e-4)


def test_a_model_in_memory_is_sent_to_the_workers(small, tmp_path):
    """A wrapped model, which no worker can load by name, is sent to the workers."""
    wrapped = broca.load(small.model, small.tokenizer, name="mine")
    with broca.Workspace(executor=broca.ExecutorOptions(executor="ray", workers=1)) as workspace:
        remote = VERBS["atlas"](wrapped, workspace, tmp_path)
    local = VERBS["atlas"](small, None, tmp_path)
    assert (remote.effects, remote.model.fingerprint) == (local.effects, local.model.fingerprint)


def test_neurons_give_the_same_on_ray(workers):
    """Scores agree on Ray up to floating-point noise.

    The noise comes from other batches of observations on the workers.
    """
    located = {"task": "sorting", "items": 6, "steps": 4, "count": 5, "device": "cpu"}
    remote, local = (
        broca.neurons.locate("reference-small", **located, journal=journal)
        for journal in (workers, None)
    )
    assert [neuron.name for neuron in remote.selected] == [neuron.name for neuron in local.selected]
    scores = [[neuron.score for neuron in result.selected] for result in (remote, local)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_only_json_is_on_stdout_though_a_worker_dies(tmp_path):
    """With `--json`, Ray's messages on a killed worker go to stderr, and the command goes on."""
    with subprocess.Popen(
        [
            sys.executable, "-m", "broca", "verify", "reference-small", "--task", "sorting",
            "--heads", "L0H1+L1H2", "--others", "capitals", "--executor", "ray", "--workers", "1",
            "--json", "--out", str(tmp_path),
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as command:  # fmt: skip
        victim = None
        while victim is None and command.poll() is None:
            time.sleep(0.1)
            victim = worker_of(psutil.Process(command.pid))
        assert victim is not None
        victim.kill()
        stdout, stderr = command.communicate()
    assert command.returncode == 0, stderr
    assert json.loads(stdout)["kind"] == "verification"


def worker_of(process):
    """Returns a process of broca's workers that Ray has started, or None."""
    for child in process.children(recursive=True):
        try:
            name = " ".join(child.cmdline())
        except psutil.Error:  # it has ended
            continue
        if name.startswith("ray::Worker"):
            return child
    return None
