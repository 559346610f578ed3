"""A verb that was killed by SIGKILL resumes with the result of an undisturbed run."""

from dataclasses import replace
from functools import partial

import pytest
from dying import killed_in_batch
from journals import totals
from verbs.measuring import NARROW, VERBS
from verbs.neurons.small_runs import RUNS, arguments_of

import broca
from broca.results.files import encode
from broca.runs import run

ALWAYS = ("localize", "stress", "neurons locate")
"""Verbs that are killed in every test run; the others, which take minutes, are marked long."""


@pytest.fixture(scope="module")
def models():
    """The shipped model `reference-small`, by its heads and by its neurons."""
    return {
        kind: broca.load("reference-small", device="cpu", components=kind)
        for kind in ("heads", "neurons")
    }


@pytest.fixture(autouse=True)
def _commits_are_frequent(monkeypatch):
    """Commits after every batch, so that a short run has many commits."""
    monkeypatch.setattr(run, "NOMINAL_S", 0.0)


def call_of(verb, models, journal):
    """Returns a small call of a verb on a journal."""
    family, _, name = verb.rpartition(" ")
    if family:
        return partial(
            getattr(broca.neurons, name), models["neurons"], **arguments_of(name), journal=journal
        )
    return partial(VERBS[verb], models["heads"], journal, journal.parent)


def result_of(call):
    """Returns the encoded result of a call without its times."""
    result = call()
    if hasattr(result, "cost"):
        result = replace(result, cost=replace(result.cost, wall_s=0.0))
    return encode(result)


def assert_goes_on(measured_on, folder, *, share):
    """Asserts that what is measured on a journal survives two kills, the first after a share.

    The journal keeps every committed batch, and the result is that of an undisturbed journal.
    """
    undisturbed, journal = folder / "whole.sqlite", folder / "killed" / "j.sqlite"
    journal.parent.mkdir()
    expected = measured_on(undisturbed)
    full = totals(undisturbed)
    for batch in sorted({full["batches"] // share + 1, full["batches"]}):
        killed_in_batch(lambda: measured_on(journal), batch)
        assert totals(journal)["batches"] == batch - 1
    assert measured_on(journal) == expected
    assert totals(journal) == full


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(verb, marks=() if verb in ALWAYS else pytest.mark.long)
        for verb in (*VERBS, *(f"neurons {name}" for name in RUNS))
    ],
)
def test_a_killed_verb_goes_on_where_it_was(models, tmp_path, verb):
    """A verb killed after a third of its batches and in the last one gives the same result.

    The journal keeps every committed batch, and no row is measured twice.
    """
    assert_goes_on(lambda journal: result_of(call_of(verb, models, journal)), tmp_path, share=3)


@pytest.mark.long
def test_a_killed_page_keeps_what_its_visitors_measured(models, tmp_path):
    """A page that is served again on its journal shows the same score, and measures the rest."""

    def score_on(journal):
        with broca.explore(
            models["heads"], tasks="capitals", port=0, journal=journal, engine_options=NARROW
        ) as page:
            return page.explorer.score("capitals", ["L0H1"])

    assert_goes_on(score_on, tmp_path, share=2)
