"""Results of the neuron commands as tables: every column shows its field."""

from pathlib import Path

import pytest
from results.samples import make_experiment, make_neurons
from verbs.neurons.small_runs import arguments_of

from broca import neurons
from broca.cli.output import show
from broca.models import load
from broca.results.neurons import LocatedNeuron


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    """No word of a table is broken."""
    monkeypatch.setenv("COLUMNS", "250")


def test_located_neurons_are_listed_up_to_a_number(capsys):
    """Best first; how many more there are; notes and the place of the file."""
    several = tuple(LocatedNeuron(f"L0N{n}", 0, n, 1.0, 3.0) for n in range(20 + 3))
    result = make_neurons()
    object.__setattr__(result, "selected", several)
    object.__setattr__(result, "notes", ("a note",))
    object.__setattr__(result, "residual", 0.0125)
    show(result, Path("out/neurons.json"), json=False)
    text = capsys.readouterr().out
    assert "stand out on adding by cnl, 4 items" in text
    assert f"L0N{20 - 1}" in text
    assert f"L0N{20} " not in text
    assert "... and 3 more" in text
    assert "p(answer) 0.500; error of the steps 0.0125" in text
    assert "note: a note" in text
    assert "written: out/neurons.json" in text


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("erase", ("drop", "random_drop", "excess")),
        ("cross", ("change",)),
        ("decouple", ("of_larger", "iou")),
    ],
)
def test_every_line_of_an_experiment_is_a_line_of_its_table(capsys, verb, fields):
    """Estimates to three digits."""
    small = load("reference-small", device="cpu", components="neurons")
    result = getattr(neurons, verb)(small, **arguments_of(verb))
    show(result, Path("out.json"), json=False)
    text = capsys.readouterr().out
    for line in result.result:
        for field in fields:
            assert f"{getattr(line, field).value:.3f}" in text, field
    if verb == "cross":
        assert "Mean over pairs" in text


def test_an_experiment_without_lines_prints_no_table(capsys):
    """Its file is named all the same."""
    show(make_experiment("erase", result=()), Path("erase.json"), json=False)
    assert capsys.readouterr().out.strip() == "written: erase.json"
