"""`result.json` and `verification.json`: their fields, and numbers that follow from others."""

from dataclasses import replace
from typing import get_args

import pytest
from results.samples import make_result
from simulated import toy_verification

from broca.results.base import Interval, ModelInfo
from broca.results.files import plain
from broca.results.localization import AnswerInfo, Repeat
from broca.results.verification import Verdict, VerdictLabel


def test_repeats_say_how_stable_a_selection_is():
    """A result has the number of selections of each component, their mean overlap and all rows."""
    repeats = (Repeat(1, ("L1H2", "L2H3"), "found", 900), Repeat(2, (), "not enough rows", 900))
    result = make_result(repeats=repeats, answer=AnswerInfo("found"))
    # the first search selected what the verification dropped all the same
    result = replace(result, verification=replace(result.verification, dropped=("L2H3",)))
    assert result.times_selected == {"L1H2": 2, "L2H3": 2, "L0H0": 1}
    assert result.overlap == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert make_result().overlap is None
    assert make_result(selected=(), abstained=True, repeats=repeats[1:]).overlap == 1.0
    assert " 21,900 rows of search and 800 on report items in " in [*result.terminal()][-1]


def test_numbers_that_follow_from_others_are_not_in_the_file():
    """Drops, intervals and scores agree with one another."""
    verification = toy_verification()
    assert not {"drop", "off_target", "specific", "worst"} & set(plain(verification))
    claimed = verification.drops[0]
    assert verification.drop == claimed.drop
    assert claimed.drop == verification.baseline["adding"] - verification.after["adding"]
    assert verification.specific == Interval(verification.specific_drop, *verification.specific_ci)
    assert verification.off_target.value == verification.off_target_drop
    assert verification.specific_drop == claimed.drop - verification.off_target_drop
    assert claimed.interval == Interval(claimed.drop, *claimed.ci)
    assert verification.worst.drop == max(line.drop for line in verification.roles("other"))


@pytest.mark.parametrize("label", get_args(VerdictLabel))
def test_a_headline_states_a_need_only_if_it_is_proved(label):
    """A set that is needed is named with the model; other verdicts bring their own sentence."""
    result = make_result()
    verdict = Verdict(label, "why", headline="So it is")
    verified = replace(result.verification, verdict=verdict)
    expected = "toy needs L1H2, L0H0 for adding" if label == "specific" else "So it is"
    assert verified.headline == replace(result, verification=verified).headline == expected
    assert result.headline == "toy without L1H2, L0H0 loses points of adding (not verified)"
    assert "does not lose" in make_result(after={"adding": 1.0, "sorting": 1.0}).headline


@pytest.mark.parametrize(
    ("answer", "headline"),
    [
        (None, "No heads found that toy needs"),
        (AnswerInfo("nothing", 0.0421), "No set of heads of toy costs adding 4.3 points or more"),
        (AnswerInfo("not enough rows", 0.2, 9000), "Not enough rows to tell which heads toy needs"),
    ],
)
def test_not_seeing_is_not_called_nothing(answer, headline):
    """An abstention says whether nothing was found or the rows do not suffice."""
    model = ModelInfo("/data/models/toy/", "f")
    result = make_result(selected=(), abstained=True, reason="why", answer=answer, model=model)
    assert result.headline.startswith(headline)
