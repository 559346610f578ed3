"""Sets of neurons and experiments on neurons."""

from dataclasses import replace
from math import nan

import pytest

from broca.errors import BadInput
from broca.results.base import Interval, ModelInfo
from broca.results.files import decode, encode, plain
from broca.results.neurons import (
    EXPERIMENTS,
    Agreement,
    Arm,
    ComparedHalves,
    Crossed,
    Decoupled,
    Erased,
    Fidelity,
    LocatedNeuron,
    Moved,
    NeuronExperiment,
    NeuronSet,
    Overlap,
    Overlaps,
    Reliability,
)

MODEL = ModelInfo("toy", "abc")
HALF = Interval(0.5, 0.25, 0.75)
ERASED = Erased("cnl", "adding", 4, HALF, HALF, HALF, HALF, (0.25, 0.5), HALF, HALF)
DECOUPLED = Decoupled("same content", 3, None, HALF, HALF, HALF, 0.125, 0.0625)
RESULTS = {
    "fidelity": Fidelity("adding", 3, 4.5, 0.0, (Agreement("same item", HALF, HALF, 0.1, 0.05),)),
    "reliability": Reliability("adding", 6, 0, 4.5, 0.5, 2, (
        Moved(0.0, HALF, HALF, HALF, None, None, 0.5), Moved(2.0, HALF, HALF, HALF, HALF, 0.5, 1.0),
    )),
    "decouple": (DECOUPLED, replace(DECOUPLED, relation="same capability")),
    "overlap": Overlaps(
        ("adding", "sorting"),
        (ComparedHalves("adding/1", "sorting/2", "other capability", (3, 0),
                        Overlap(0, 0.0, None, 0.0, 0.0, 0.0, 0.0)),),
        {"other capability": {"of_first": 0.0, "of_second": None}},
    ),
    "erase": (ERASED, replace(ERASED, questions="sorting")),
    "enhance": (Arm("located", "adding", 4, 0.1, 0.05, HALF, HALF, HALF, 1, (0.5, None)),),
    "cross": (Crossed("erase", "adding", "sorting", "other capability", 4, HALF, 0.5, HALF),),
}  # fmt: skip
"""A small result of every verb."""


def make_neurons():
    """Returns a set of two neurons."""
    neurons = tuple(LocatedNeuron(f"L0N{n}", 0, n, 1.0 - n / 4, 3.0) for n in (1, 2))
    return NeuronSet(
        model=MODEL, task="adding", capability="sums", method="cnl", settings={}, items=4,
        probability=0.5, residual=None, selected=neurons, by_layer={"0": 2, "1": 0},
        share_of_neurons=0.1, share_of_parameters=0.05,
    )  # fmt: skip


def make_experiment(verb="erase", **changes):
    """Returns an experiment of a verb; that of `erase` has two lines."""
    settings = {"command": f"broca neurons {verb}", "result": RESULTS[verb], **changes}
    return NeuronExperiment(model=MODEL, settings={}, **settings)


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


def test_an_experiments_lines_are_those_of_its_result():
    """Lines become records; a result that is one data class is one record."""
    experiment = make_experiment()
    assert experiment.records() == [plain(line) for line in RESULTS["erase"]]
    assert experiment.summary() == ("broca neurons erase of toy: 2 lines",)
    assert repr(make_experiment("reliability")) == "broca neurons reliability of toy: 2 lines"
    assert repr(make_experiment("cross")) == "broca neurons cross of toy: 1 line"
    (record,) = make_experiment("fidelity").records()
    assert record == plain(RESULTS["fidelity"])


@pytest.mark.parametrize("verb", EXPERIMENTS)
def test_every_experiment_is_restored_and_shown(verb, tmp_path):
    """The file gives an equal result of the same data classes; text, tables and page are made."""
    experiment = make_experiment(verb)
    assert experiment.result == RESULTS[verb]
    again = NeuronExperiment.read(experiment.save(tmp_path)[0])
    assert again == experiment
    assert (tmp_path / f"{verb}.html").is_file()
    assert 1 <= len(repr(again).splitlines()) <= 5
    assert "<table>" in again._repr_html_()
    assert len(again.to_frame()) == len(experiment.records()) > 0
    assert again.tables
    assert all(len(again.to_frame(table=name)) for name in again.tables)


def test_what_is_not_finite_is_none_as_in_the_file():
    """NaN of a measured result and of a file of null intervals is None."""
    arm = replace(RESULTS["enhance"][0], losses=(0.5, nan))
    assert make_experiment("enhance", result=(arm,)).result == RESULTS["enhance"]
    unknown = replace(DECOUPLED, of_first=Interval(nan, nan, nan))
    experiment = make_experiment("decouple", result=(unknown,))
    assert experiment.result == (DECOUPLED,)
    text = encode(experiment)
    older = text.replace(
        '"of_first": null', '"of_first": {"value": null, "low": null, "high": null}'
    )
    assert older != text
    assert decode(NeuronExperiment, older) == experiment


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("broca neurons erase", [{"a": 1}]),
        ("broca neurons erase", [{**plain(ERASED), "more": 1}]),
        ("broca neurons enhance", [plain(ERASED)]),
        ("broca neurons locate", []),
        ("broca neurons", {}),
    ],
)
def test_a_result_of_another_type_is_refused(command, result):
    """A file whose result is not that of its command, or whose command is none, is refused."""
    text = encode(make_experiment())
    written = encode(make_experiment().result).rstrip("\n").replace("\n", "\n  ")
    assert written in text
    text = text.replace(written, encode(result)).replace("broca neurons erase", command)
    with pytest.raises(BadInput, match="this is not a neuron experiment of broca"):
        decode(NeuronExperiment, text)
