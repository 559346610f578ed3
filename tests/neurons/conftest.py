"""A tiny model with neuron gates, and runs in memory on short examples."""

import pytest

from broca.models import GatedModel
from broca.neurons.items import example_tasks, with_golds
from broca.neurons.neuron_run import NeuronModel, NeuronRun
from broca.options import RuleOptions
from broca.runs.run import Run
from broca.runs.workspace import Workspace
from broca.tasks import Split, Task
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture
def neurons():
    """Two layers of 64 neurons with random weights, built anew as training changes them."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="heads+neurons")
    return NeuronModel(model)


def letters(count=8, *, name="letters", start=0):
    """A task of `count` short examples, every content in two wordings."""
    examples = tuple(
        {
            "prompt": f"say {chr(97 + (start + n) % 26)}",
            "answer": f" {chr(65 + (start + n) % 26)}",
            "content": f"c{n // 2}",
            "wording": f"w{n % 2}",
        }
        for n in range(count)
    )
    return Task(name, examples=examples, kind="loglikelihood")


@pytest.fixture
def ask(neurons):
    """Returns a function that makes a run in memory with all items of a task in every part."""

    def make(*tasks, journal=None, rule=None):
        benchmarks = {}
        for task in tasks:
            benchmarks |= example_tasks(neurons.model, task).benchmarks
        splits = {
            name: Split(*[tuple(range(len(benchmark.items)))] * 3)
            for name, benchmark in benchmarks.items()
        }
        parts = dict.fromkeys(("locate", "confirm", "report"), tuple(benchmarks))
        measured = with_golds(benchmarks, splits, parts)
        run = Run(neurons.model, measured, Workspace(journal), settings={"verb": "test"})
        return NeuronRun(run, neurons, rule or RuleOptions(steps=3))

    return make
