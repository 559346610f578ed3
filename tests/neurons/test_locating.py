"""Scores of data sets: resumed, named, and independent of their order."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons import item_scores
from broca.neurons.gradients import Attributor


def test_a_killed_run_goes_on(neurons, ask, tmp_path, monkeypatch):
    """What was stored before the kill is not computed again; the result is the same."""
    questions, book = ask(8), tmp_path / "scores.bin"
    whole = item_scores(neurons, questions)
    original = Attributor.run

    def killed(self, requests, store):
        done = 0

        def some(position, found):
            nonlocal done
            if done == 3:
                raise KeyboardInterrupt
            done += 1
            store(position, found)

        original(self, requests, some)

    monkeypatch.setattr(Attributor, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        item_scores(neurons, questions, book=book)
    monkeypatch.setattr(Attributor, "run", original)
    resumed = item_scores(neurons, questions, book=book)
    assert (whole.computed, resumed.computed) == (8, 5)
    np.testing.assert_allclose(resumed.scores, whole.scores, atol=1e-7)
    again = item_scores(neurons, questions, book=book)
    assert again.computed == 0
    assert np.array_equal(again.scores, resumed.scores)


def test_other_settings_are_other_records(neurons, ask, tmp_path):
    """Steps and method are part of the key."""
    book, questions = tmp_path / "scores.bin", ask(2)
    assert item_scores(neurons, questions, steps=3, book=book).computed == 2
    assert item_scores(neurons, questions, steps=4, book=book).computed == 2
    assert item_scores(neurons, questions, score="gradient", book=book).computed == 2
    assert item_scores(neurons, questions, steps=3, book=book).computed == 0


def test_names_and_columns_are_inverse(neurons):
    """Every neuron has a name; names of others are refused."""
    every = neurons.names(np.arange(len(neurons)))
    assert every[0] == "L0N0"
    assert every[-1] == "L1N63"
    assert neurons.columns(every).tolist() == list(range(128))
    for wrong in ("L2N0", "L0N64", "L0H1"):
        with pytest.raises(BadInput, match="no neuron"):
            neurons.columns([wrong])


def test_parameters_are_counted(neurons):
    """Of a gated block: a column of down, a row each of gate and up."""
    assert set(neurons.parameter_counts().tolist()) == {3 * 32}


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"score": "magic"}])
def test_wrong_settings_are_refused(neurons, ask, wrong):
    """In one line."""
    with pytest.raises(BadInput):
        item_scores(neurons, ask(2), **wrong)
