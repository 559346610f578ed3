"""The code that runs in a worker, run here in the current process."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from broca.engine import Engine
from broca.errors import BadLogits, OutOfMemory, UnknownName
from broca.executors.asking import Questions
from broca.executors.base import Setting
from broca.executors.workers import Refusal, Worker, WorkerSpec
from broca.models import GatedModel, load
from broca.options import ModelOptions
from broca.tasks import Request
from broca.testing import tiny_llama, tiny_tokenizer


def test_errors_keep_their_kind_on_the_way():
    """An error of broca in a worker is raised in the caller with its class and fields."""
    (error,) = [Refusal.of(BadLogits("NaN", request=3)).error()]
    assert isinstance(error, BadLogits)
    assert (str(error), error.request) == ("NaN", 3)
    assert isinstance(Refusal.of(OutOfMemory("no room")).error(), OutOfMemory)


@pytest.fixture
def threads():
    """Restores the number of threads after the test."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def questions():
    """Returns one request under each of two masks of the shipped model."""
    gates = np.ones((2, 48), dtype=np.float32)
    gates[1, :4] = 0
    index = np.arange(2)
    requests = tuple(Request("loglikelihood", (5, 6, 7), (number,)) for number in (8, 9))
    return Questions(gates, index, np.zeros(2, dtype=np.intp), index, 2, requests)


def on_cpu(spec):
    """Returns the specification with its model on the CPU."""
    return replace(spec, loading=replace(spec.loading, device="cpu"))


@pytest.mark.usefixtures("threads")
def test_a_worker_answers_as_an_engine_does():
    """A worker loads the model by name, gives an engine's answers and reports the tokens read."""
    model = load("reference-small", device="cpu")
    spec = on_cpu(WorkerSpec.of(model))
    assert (spec.model, spec.held, spec.loading.components) == ("reference-small", None, "heads")
    worker = Worker(spec)
    loaded = worker.load()
    assert (loaded.identity, loaded.device) == (model.identity, "cpu")
    job = questions()
    reply, tokens = worker.answer(job, Setting())
    where = (job.gates, job.gate_index, job.donor_index)
    assert reply.outputs == tuple(Engine(model).run(job.requests, *where))
    assert tokens == 6


@pytest.mark.usefixtures("threads")
def test_a_model_in_memory_is_held(tiny):
    """A model without a source is sent to the worker as an object."""
    spec = WorkerSpec.of(tiny)
    assert spec.held == (tiny.model, tiny.tokenizer)
    loaded = Worker(on_cpu(spec), spec.held).load()
    assert loaded.identity == tiny.identity


@pytest.mark.usefixtures("threads")
def test_what_broca_refuses_comes_back_as_data():
    """An unknown model and infinite logits come back as refusals, not as raised errors."""
    missing = Worker(WorkerSpec("./nowhere", "")).load()
    assert isinstance(missing.error(), UnknownName)
    broken = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="broken")
    broken.model.lm_head.weight.data[3] = float("inf")
    spec = on_cpu(WorkerSpec.of(broken))
    worker = Worker(spec, spec.held)
    worker.load()
    job = replace(questions(), gates=np.ones((2, 8), dtype=np.float32))
    reply, _ = worker.answer(job, Setting())
    assert isinstance(reply.error(), BadLogits)
    assert reply.error().request == 0


class Shifted:
    """A change of weights that shifts one row of the output head."""

    digest = "shifted"

    @contextmanager
    def applied(self, model):
        """Changes the weights within the context."""
        weight = model.model.lm_head.weight
        before = weight.data.clone()
        weight.data[8] += 1
        yield
        weight.data.copy_(before)


@pytest.mark.usefixtures("threads")
def test_changed_weights_are_in_force_for_their_questions_alone():
    """Changed weights are in force for their own questions alone."""
    worker = Worker(WorkerSpec("reference-small", "", ModelOptions(device="cpu")))
    worker.load()
    before, _ = worker.answer(questions(), Setting())
    changed, _ = worker.answer(questions(), Setting("shifted", delta=Shifted()))
    after, _ = worker.answer(questions(), Setting())
    assert after == before
    assert changed.outputs[0].value != before.outputs[0].value
