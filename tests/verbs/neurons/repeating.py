"""Checks that every neuron verb repeats from its journal and refuses bad input in one line."""

import json

import pytest
from journals import totals
from verbs.neurons.small_runs import arguments_of

from broca import neurons
from broca.errors import BadInput
from broca.results.files import encode


def repeated(model, verb, folder, **changes):
    """Calls a verb twice on one journal, checks that it repeats, and that its file is read again.

    The result is shown as text, as HTML and as a table.
    """
    arguments, journal = {**arguments_of(verb), **changes}, folder / "j.sqlite"
    first = getattr(neurons, verb)(model, **arguments, journal=journal)
    before = totals(journal)
    assert before["rows"] + before["vectors"] > 0
    again = getattr(neurons, verb)(model, **arguments, journal=journal)
    assert encode(again) == encode(first)
    assert totals(journal) == before
    file = first.save(folder)[0]
    assert file.name == ("neurons.json" if verb == "locate" else f"{verb}.json")
    assert json.loads(file.read_text())["settings"]["steps"] == 4
    assert type(first).read(file) == first
    assert len(repr(first).splitlines()) <= 5
    assert "<table>" in first._repr_html_()
    assert len(first.to_frame()) == len(first.records())
    return first


def assert_refused(model, verb, wrong, message):
    """Asserts that a verb refuses an argument in one line that names parameters, not flags."""
    with pytest.raises(BadInput, match=message) as error:
        getattr(neurons, verb)(model, **wrong)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)
