"""`neurons.json` and the other results: complete, and read as they were written."""

import json

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons import Rule, choose, located, neuron_model_info
from broca.neurons.statistics import estimate
from broca.results.codec import encode
from broca.results.neurons import NeuronExperiment, NeuronSet


def test_located_comes_back_as_it_was(neurons, ask, tmp_path):
    """Shares, layers and order are right, and the file gives the same object."""
    questions = ask(4)
    choice = choose(neurons, questions, rule=Rule(count=5), steps=3)
    result = located(neurons, questions, choice, settings={"sigma": 6.0})
    assert result.share_of_neurons == 5 / 128
    total = sum(one.numel() for one in neurons.model.model.parameters())
    assert result.share_of_parameters == pytest.approx(5 * 96 / total)
    assert sum(result.by_layer.values()) == 5
    scores = [one.score for one in result.selected]
    assert scores == sorted(scores, reverse=True)
    assert (
        neurons.columns([one.name for one in result.selected]).tolist() == choice.columns.tolist()
    )
    assert result.save(tmp_path) == (tmp_path / "neurons.json",)
    assert NeuronSet.read(tmp_path / "neurons.json") == NeuronSet.read(tmp_path) == result


def test_what_is_not_known_is_null(neurons):
    """NaN is no JSON."""
    done = NeuronExperiment(
        command="x",
        model=neuron_model_info(neurons),
        settings={},
        result=(estimate([], seed=0), np.float32(1.5)),
    )
    data = json.loads(encode(done))
    assert data["result"] == [{"mean": None, "low": None, "high": None, "n": 0}, 1.5]


@pytest.mark.parametrize("content", ["{}", "[]", "nothing", '{"schema": 99}'])
def test_other_files_are_refused(tmp_path, content):
    """Each in one line."""
    (tmp_path / "neurons.json").write_text(content)
    with pytest.raises(BadInput):
        NeuronSet.read(tmp_path)
    with pytest.raises(BadInput, match="does not exist"):
        NeuronSet.read(tmp_path / "elsewhere")


def test_intervals_hold_the_mean_and_shrink():
    """Against the normal interval, for many values; repeatable."""
    values = np.random.default_rng(0).normal(1, 2, 400)
    found = estimate(values, seed=0)
    half = 1.96 * values.std() / 20
    assert found == estimate(values, seed=0)
    assert found.low == pytest.approx(values.mean() - half, abs=0.05)
    assert found.high == pytest.approx(values.mean() + half, abs=0.05)
