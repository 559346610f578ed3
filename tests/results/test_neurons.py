"""Sets of neurons and experiments on neurons."""

from dataclasses import dataclass, replace

from broca.results.base import ModelInfo
from broca.results.neurons import LocatedNeuron, NeuronExperiment, NeuronSet

MODEL = ModelInfo("toy", "abc")


def make_neurons():
    """Returns a set of two neurons."""
    neurons = tuple(LocatedNeuron(f"L0N{n}", 0, n, 1.0 - n / 4, 3.0) for n in (1, 2))
    return NeuronSet(
        model=MODEL, task="adding", capability="sums", method="cnl", settings={}, items=4,
        probability=0.5, residual=None, selected=neurons, by_layer={"0": 2, "1": 0},
        share_of_neurons=0.1, share_of_parameters=0.05,
    )  # fmt: skip


def make_experiment():
    """Returns an experiment with two lines."""
    return NeuronExperiment(
        command="broca neurons erase", model=MODEL, settings={}, result=[{"a": 1}, {"a": 2}]
    )


def test_a_set_is_summed_up_with_its_share_and_its_first_neurons():
    """The summary has count, share and first neurons; the records are the neurons, best first."""
    neurons = make_neurons()
    first, second = neurons.summary()
    assert first == "2 neurons of adding in toy (10.00% of all): L0N1, L0N2"
    assert second == "cnl, 4 items"
    assert neurons.records()[0] == {
        "component": "L0N1", "layer": 0, "index": 1, "score": 0.75, "sigmas": 3.0,
    }  # fmt: skip
    assert replace(neurons, selected=()).summary()[0].endswith("none")


@dataclass(frozen=True)
class Arm:
    """A line of an experiment."""

    arm: str
    score: float


def test_an_experiments_lines_are_those_of_its_result():
    """Results that are data classes, in a list or alone, and plain values become records."""
    experiment = make_experiment()
    lines = replace(experiment, result=(Arm("a", 0.5), Arm("b", 1.0))).records()
    assert lines == [{"arm": "a", "score": 0.5}, {"arm": "b", "score": 1.0}]
    assert replace(experiment, result=Arm("a", 0.5)).records() == lines[:1]
    assert replace(experiment, result=[1.5]).records() == [{"value": 1.5}]
    assert experiment.summary() == ("broca neurons erase of toy: 2 lines",)
