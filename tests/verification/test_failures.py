"""Failure modes of outputs."""

import numpy as np
import pytest

from broca.tasks import Generation, Item, LogLikelihood, Request
from broca.verification.failures import failures, repeats


def texts(*outputs):
    """Returns one generation for each item."""
    return [(Generation(text, len(text)),) for text in outputs]


def choices(*values):
    """Returns the log-likelihoods of the choices for each item."""
    return [tuple(LogLikelihood(value, False) for value in item_values) for item_values in values]


def items(*requests):
    """Returns items with the given requests."""
    return [Item("t", number, "", "", of_item) for number, of_item in enumerate(requests)]


def sentences(number):
    """Returns requests for two sentences of an item, which no other item has."""
    return tuple(
        Request("loglikelihood", (1,), (number, *range(first, first + 9))) for first in (50, 90)
    )


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("the cat sat the cat sat the cat sat the cat sat", True), ("``````````````````````", True),
        ("( ( ( ( ( ( ( ( ( ( ( (", True), ("> > > >", False), ("110", False), ("", False),
        ("one sentence of eight words that says something new", False),
        ("8 + 4 = 12 and 12 + 30 = 42 so that the answer is 42", False),
    ],
)  # fmt: skip
def test_loops_are_told_from_answers(text, loops):
    """Texts with half of their 3-grams repeated are loops; short answers never are."""
    assert repeats(text) is loops


PLAIN = items((), (), (), ())
LETTERS = items(*[tuple(Request("loglikelihood", (1, 2, 3), (letter,)) for letter in (7, 8))] * 4)
SENTENCES = items(*[sentences(number) for number in range(5)])


@pytest.mark.parametrize(
    ("mode", "examined", "before", "after", "right", "share"),
    [
        # on half of the items
        ("constant", None, texts(*"abcdef"), texts(*"zzzzef"), None, 4 / 6),
        # not beyond the intact model's favourite
        ("constant", None, texts(*"zzzabc"), texts(*"zzzzef"), None, 0),
        # right answers are not constant
        ("constant", None, texts(*"abcd"), texts(*"zzzz"), (1, 1, 0, 0), 0.5),
        # the same choice everywhere
        (
            "constant", LETTERS, choices((-1, -2), (-2, -1), (-1, -3), (-4, -1)),
            choices((-1, -2), (-1, -5), (-2, -3), (-3, -9)), None, 1,
        ),
        # sentences have no place to prefer
        (
            "constant", SENTENCES, choices((-1, -2), (-2, -1), (-2, -1), (-4, -1), (-4, -1)),
            choices(*[(-1, -2)] * 5), None, 0,
        ),
        # white space
        ("empty", None, texts("a", "b"), texts(" \n", "b"), None, 0.5),
        # right answers are not empty
        ("empty", None, texts(*"abcd"), texts("", "", "", "d"), (1, 1, 0, 0), 0.25),
        # a hundredth of the probability
        (
            "collapse", None, choices((-1.0, -2.0), (-2.0, -1.0)),
            choices((-5.0, -6.0), (-6.0, -7.0)), None, 0.5,
        ),
        # 1 nat a token of sentences
        (
            "collapse", items(sentences(1), sentences(2)),
            choices((-30.0, -32.0), (-30.0, -32.0)), choices((-37.7, -39.7), (-41.0, -43.0)),
            None, 0.5,
        ),
    ],
)  # fmt: skip
def test_modes_of_failure(mode, examined, before, after, right, share):
    """The mode has this share of the items; intact outputs of the table have none."""
    examined = examined or items(*[()] * len(before))
    scores = np.array([np.ones(len(before)), right or np.zeros(len(before))])
    counted = failures("t", examined, before, after, scores)
    assert (counted.before[mode], counted.after[mode]) == (0, share)


def test_excess_counts_what_was_not_degenerate_before():
    """An item that is degenerate in both states counts neither as excess nor as damage."""
    scores = np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    result = failures("t", PLAIN, texts("", "b", "c", "d"), texts("", "", "c", "d"), scores)
    assert result.excess == 0.25
    assert (result.before["empty"], result.after["empty"]) == (0.25, 0.5)
    assert result.most_common == ""
    assert result.explained == pytest.approx(1 / 3)
    assert result.damage == 0.25


@pytest.mark.parametrize(
    ("after", "damage"),
    [((0, 0, 0, 1), 0.75), ((1, 1, 1, 1), 0.0), ((0, 1, 1, 1), 0.25), ((1, 1, 0, 1), 0.25)],
)
def test_damage_is_what_is_lost_with_degenerate_outputs(after, damage):
    """Damage is the share of the skill above chance lost on outputs that became degenerate."""
    scores = np.array([[1.0, 1.0, 1.0, 1.0], after])
    after = texts("", " ", "\n", "d")
    result = failures("t", PLAIN, texts(*"abcd"), after, scores, chance=0.5)
    assert result.damage == damage
    first = failures(
        "t", PLAIN, texts(*"abcd"), after, scores, chance=0.5, aggregate=lambda values, _: values[0]
    )
    assert first.explained == 1.0 - scores[1, 0]


def test_gains_on_degenerate_outputs_pay_for_losses():
    """Gains on degenerate outputs offset losses, and a task at chance has no damage."""
    before = choices(*[(-30.0, -32.0)] * 4)
    after = choices(*[(-60.0, -62.0)] * 4)
    examined = items(*[sentences(number) for number in range(4)])
    scores = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    result = failures("t", examined, before, after, scores)
    assert (result.excess, result.explained, result.damage) == (1.0, 0.0, 0.0)
    assert failures("t", examined, before, after, 1 - scores).damage == 0.5
    assert failures("t", examined, before, after, 1 - scores, can_fail=False).damage == 0
