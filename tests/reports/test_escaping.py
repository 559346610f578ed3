"""Outputs, names and notes may hold anything: in every page a script tag is shown, not run."""

from dataclasses import fields, is_dataclass, replace

import pytest
from reports.test_page import make_result
from results.test_atlas import make_atlas
from simulated import toy_verification

from broca.neurons.overlapping import Compared, Overlaps
from broca.reports import (
    render_atlas_page,
    render_html,
    render_stress_page,
    render_verification_page,
)
from broca.results.base import Interval, ModelInfo
from broca.results.neurons import NeuronExperiment
from broca.results.stress_test import Necessity, Probe, Reversal, Shift, StressTest
from broca.results.verification import TaskFailures

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"
KEPT = {"kind", "kinds", "role", "response", "level", "components", "modes", "label"}
"""Fields whose words broca itself writes and looks up."""


def planted(value):
    """The same with the tag before every text, keys of dictionaries too."""
    if isinstance(value, str):
        return EVIL + value
    if is_dataclass(value):
        own = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        kept = {*KEPT, *(("before", "after") if isinstance(value, TaskFailures) else ())}
        return replace(value, **{k: planted(v) for k, v in own.items() if k not in kept})
    if isinstance(value, dict):
        return {planted(key): planted(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(planted(one) for one in value)
    return value


@pytest.fixture(scope="module")
def verification():
    """Of a simulated model: random sets, failures, outputs side by side."""
    return toy_verification()


def make_stress():
    """A small stress test."""
    one = Interval(0.5, 0.4, 0.6)
    return StressTest(
        model=ModelInfo("toy", "abc"), family="letters", heads=("L0H1",), seed=0, pairs=48,
        necessity=(Necessity("zero", one, {"sums": 0.1}, 0.4, (0.0, 0.1), 1),),
        probe=Probe(0.9, 0.8, 0.5, 0.5, 0.5, 96),
        reversals=(Reversal("the last token", one),),
        shifts=(Shift("same template", one, one, None), Shift("noise", one, None, one)),
        self_patch=0.0, positive_control=one, verdict="transfers", text="it does",
        notes=("a note",),
    )  # fmt: skip


def shown_as_text(page):
    """Whether the tag is in the page as text, and nowhere as a tag."""
    as_tag = "<script>alert" in page or "<img" in page
    return not as_tag and "&lt;script&gt;alert" in page


def test_report_escapes_everything():
    """Task, model, notes, options, heads."""
    assert shown_as_text(render_html(planted(make_result())))


def test_verification_escapes_everything(verification):
    """Prompts and what the model answered to them, among the rest."""
    assert verification.samples
    evil = planted(verification)
    assert shown_as_text(render_verification_page(evil))
    assert shown_as_text(render_html(make_result(), evil))
    answers = [text for one in evil.samples for text in (one.before, one.after)]
    assert all(text.startswith(EVIL) for text in answers)


def test_stress_page_escapes_everything():
    """Families come from files of the user."""
    assert shown_as_text(render_stress_page(planted(make_stress())))


def test_atlas_escapes_everything():
    """In the tables and in what the figure shows."""
    assert shown_as_text(render_atlas_page(planted(make_atlas())))


def test_overlap_page_escapes_everything():
    """Names of data sets and of the model."""
    from broca.neurons.sets import Overlap
    from broca.reports.overlap import overlap_page

    measured = Overlap(**dict.fromkeys((one.name for one in fields(Overlap)), 0.5))
    pairs = (Compared(f"{EVIL}/first", f"{EVIL}/second", "same data", (3, 4), measured),)
    result = NeuronExperiment(
        command="broca neurons overlap",
        model=ModelInfo(name=EVIL, fingerprint=""),
        settings={},
        result=Overlaps((EVIL,), pairs, {}),
    )
    assert shown_as_text(overlap_page(result))
