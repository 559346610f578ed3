"""Every page shows a script tag in outputs, names and notes as text and never runs it."""

from dataclasses import fields, is_dataclass, replace

import pytest
from results.samples import make_result
from results.samples import make_atlas
from simulated import toy_verification

from broca.results.base import Interval, ModelInfo
from broca.results.neurons import ComparedHalves, NeuronExperiment, Overlap, Overlaps
from broca.results.stress_test import Necessity, Probe, Reversal, Shift, StressTest
from broca.results.verification import TaskFailures

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"
KEPT = {"kind", "kinds", "role", "response", "level", "components", "modes", "label"}
"""Fields whose values are words of broca."""


def planted(value):
    """Returns the value with the tag before every text, including keys of dictionaries."""
    if isinstance(value, str):
        return EVIL + value
    if is_dataclass(value):
        values = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        unchanged = {*KEPT, *(("before", "after") if isinstance(value, TaskFailures) else ())}
        return replace(value, **{k: planted(v) for k, v in values.items() if k not in unchanged})
    if isinstance(value, dict):
        return {planted(key): planted(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(planted(item) for item in value)
    return value


@pytest.fixture(scope="module")
def verification():
    """A verification of a simulated model with random sets, failures and outputs."""
    return toy_verification()


def make_stress():
    """Returns a small stress test."""
    interval = Interval(0.5, 0.4, 0.6)
    return StressTest(
        model=ModelInfo("toy", "abc"), family="letters", heads=("L0H1",), seed=0, pairs=48,
        necessity=(Necessity("zero", interval, {"sums": 0.1}, 0.4, (0.0, 0.1), 1),),
        probe=Probe(0.9, 0.8, 0.5, 0.5, 0.5, 96),
        reversals=(Reversal("the last token", interval),),
        shifts=(
            Shift("same template", interval, interval, None),
            Shift("noise", interval, None, interval),
        ),
        self_patch=0.0, positive_control=interval, verdict="transfers", text="it does",
        notes=("a note",),
    )  # fmt: skip


def shown_as_text(page):
    """Returns whether the tag is in the page as text and nowhere as a tag."""
    as_tag = "<script>alert" in page or "<img" in page
    return not as_tag and "&lt;script&gt;alert" in page


def test_report_escapes_everything():
    """Task, model, notes, options and heads of a result are escaped."""
    assert shown_as_text(planted(make_result()).page())


def test_verification_escapes_everything(verification):
    """Prompts and the model's outputs are escaped with all other texts."""
    assert verification.samples
    evil = planted(verification)
    assert shown_as_text(evil.page())
    assert shown_as_text(make_result().page(evil))
    answers = [text for sample in evil.samples for text in (sample.before, sample.after)]
    assert all(text.startswith(EVIL) for text in answers)


def test_stress_page_escapes_everything():
    """Names of families, which come from files of the user, are escaped."""
    assert shown_as_text(planted(make_stress()).page())


def test_atlas_escapes_everything():
    """Texts of an atlas are escaped in its tables and in its figure."""
    assert shown_as_text(planted(make_atlas()).page())


def test_overlap_page_escapes_everything():
    """Names of data sets and of the model are escaped."""
    from broca.results.pages.overlap import overlap_page

    measured = Overlap(1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    pairs = (ComparedHalves(f"{EVIL}/first", f"{EVIL}/second", "same data", (3, 4), measured),)
    result = NeuronExperiment(
        command="broca neurons overlap",
        model=ModelInfo(name=EVIL, fingerprint=""),
        settings={},
        result=Overlaps((EVIL,), pairs, {}),
    )
    assert shown_as_text(overlap_page(result))
