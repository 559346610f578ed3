"""The headline states what the verdict allows, in plain words."""

from dataclasses import replace
from typing import get_args

import pytest
from broca.results.pages.words import headline, is_proof
from results.samples import make_result

from broca.results.localization import AnswerInfo
from broca.results.verification import Verdict, VerdictLabel


@pytest.mark.parametrize("label", get_args(VerdictLabel))
def test_every_verdict_has_a_headline(label):
    """The headline says that a model needs a set only if the verdict proves it."""
    result = make_result()
    verified = replace(result.verification, verdict=Verdict(label, "why"))
    for shown in (verified, replace(result, verification=verified)):
        text = headline(shown)
        assert "L1H2, L0H0" in text
        assert "adding" in text
        assert text.startswith("toy needs") is is_proof(shown.verdict)


def test_without_a_verdict_nothing_is_claimed():
    """Without a verdict the headline says "not verified" or "No heads found"."""
    assert "not verified" in headline(make_result())
    nothing = make_result(selected=(), abstained=True, reason="no harm")
    assert headline(nothing) == "No heads found that toy needs for adding"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            AnswerInfo("nothing", 0.043),
            "No set of heads of toy costs adding 4 points or more beyond the other tasks",
        ),
        (
            AnswerInfo("not enough rows", 0.2, 9000),
            "Not enough rows to tell which heads toy needs for adding",
        ),
    ],
)
def test_not_seeing_is_not_called_nothing(answer, text):
    """An abstention says whether nothing was found or the rows do not suffice."""
    result = make_result(selected=(), abstained=True, reason="why", answer=answer)
    assert headline(result) == text


def test_verdicts_bring_their_own_sentence():
    """The verdict's headline is used, except for a set that is needed, which names the model."""
    result = make_result()
    for label, text in (
        ("inconclusive", "So it is"),
        ("specific", "toy needs L1H2, L0H0 for adding"),
    ):
        verdict = Verdict(label, "why", headline="So it is")
        assert headline(replace(result.verification, verdict=verdict)) == text


def test_a_folder_is_named_by_its_last_part():
    """The headline contains no path of the machine."""
    result = make_result(selected=(), abstained=True, reason="no harm")
    for name, shown in (
        ("/data/models/mine/", "mine"),
        ("../mine", "mine"),
        ("org/mine", "org/mine"),
    ):
        model = replace(result.model, name=name)
        text = headline(replace(result, model=model))
        assert text == f"No heads found that {shown} needs for adding"
