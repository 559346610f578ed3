"""A tiny model with neuron gates, and runs in memory on short examples."""

import pytest
from tiny import tiny_gated

from broca import Run, Workspace
from broca.neurons.items import with_golds
from broca.neurons.neuron_run import NeuronModel, NeuronRun
from broca.options import RuleOptions
from broca.tasks import Catalog, RequestTokenizer, Split, Task


@pytest.fixture
def neurons():
    """Two layers of 64 neurons with random weights, built anew as training changes them."""
    return NeuronModel(tiny_gated(components="heads+neurons"))


def letters(count=8, *, name="letters", start=0):
    """A task of `count` short examples."""
    examples = tuple(
        {"prompt": f"say {chr(97 + n % 26)}", "answer": f" {chr(65 + n % 26)}"}
        for n in range(start, start + count)
    )
    return Task(name, examples=examples, kind="loglikelihood")


def benchmark_of(model, task):
    """Returns a task of examples as the model is asked it."""
    return Catalog().load(task, RequestTokenizer.of(model))


@pytest.fixture
def ask(neurons):
    """Returns a function that makes a run in memory with all items of a task in every part."""

    def make(*tasks, journal=None, rule=None):
        benchmarks = {task.name: benchmark_of(neurons.model, task) for task in tasks}
        splits = {
            name: Split(*[tuple(range(len(benchmark.items)))] * 3)
            for name, benchmark in benchmarks.items()
        }
        parts = dict.fromkeys(("locate", "confirm", "report"), tuple(benchmarks))
        measured = with_golds(benchmarks, splits, parts)
        run = Run(neurons.model, measured, Workspace(journal), settings={"verb": "test"})
        return NeuronRun(run, neurons, rule or RuleOptions(steps=3))

    return make
