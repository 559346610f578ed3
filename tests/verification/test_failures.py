"""Failure modes of outputs."""

import pytest

from broca.tasks import Generation, Item, LogLikelihood
from broca.verification.failures import failures, modes_of, repeats, said, samples


def texts(*own):
    """Generations, one an item."""
    return [(Generation(text, len(text)),) for text in own]


def choices(*values):
    """Multiple-choice answers, log-likelihoods an item."""
    return [tuple(LogLikelihood(value, False) for value in own) for own in values]


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("the cat sat the cat sat the cat sat the cat sat", True),
        ("``````````````````````", True),
        ("( ( ( ( ( ( ( ( ( ( ( (", True),
        ("> > > >", False),
        ("110", False),
        ("", False),
        ("one sentence of eight words that says something new", False),
        ("8 + 4 = 12 and 12 + 30 = 42 so that the answer is 42", False),
    ],
)
def test_loops_are_told_from_answers(text, loops):
    """Half of the 3-grams repeated, in words or characters; short answers never count."""
    assert repeats(text) is loops


def test_one_answer_to_different_prompts_is_constant():
    """At least half of the items, and a quarter more than the intact model's own favourite."""
    before = texts("a", "b", "c", "d", "e", "f")
    after = texts("z", "z", "z", "z", "e", "f")
    intact, ablated = modes_of(before, after)
    assert ablated["constant"] == [True] * 4 + [False] * 2
    assert not any(intact["constant"])
    favourite = texts("z", "z", "z", "a", "b", "c")
    assert not any(modes_of(favourite, after)[1]["constant"])


def test_always_the_same_choice_is_constant():
    """Multiple choice: by the choice, not its likelihood."""
    before = choices((-1, -2), (-2, -1), (-1, -3), (-4, -1))
    after = choices((-1, -2), (-1, -5), (-2, -3), (-3, -9))
    assert all(modes_of(before, after)[1]["constant"])


def test_collapse_is_a_hundredth_of_all_choices():
    """All choices together, against the intact model: an offset of 4.6 nats."""
    before = choices((-1.0, -2.0), (-2.0, -1.0))
    after = choices((-6.0, -7.0), (-5.0, -6.0))
    assert modes_of(before, after)[1]["collapse"] == [True, False]


def test_empty_is_nothing_but_white_space():
    """In generations."""
    assert modes_of(texts("a", "b"), texts(" \n", "b"))[1]["empty"] == [True, False]


def test_excess_counts_what_was_not_degenerate_before():
    """An item that is empty in both states is no damage."""
    found = failures("t", texts("", "b", "c", "d"), texts("", "", "c", "d"))
    assert found.excess == 0.25
    assert (found.before["empty"], found.after["empty"]) == (0.25, 0.5)
    assert found.most_common == ""


def test_single_likelihoods_have_no_failure_modes():
    """A perplexity task has no choice to prefer and no text."""
    before, after = choices((-1.0,), (-1.0,)), choices((-9.0,), (-9.0,))
    assert failures("t", before, after).excess == 0
    assert said(before[0]) == "not greedy"


def test_samples_show_both_outputs():
    """Side by side, with prompt and target."""
    item = Item("t", 0, "2+2=", "4", ())
    (one,) = samples([item], texts("4"), texts("5"))
    assert (one.prompt, one.target, one.before, one.after) == ("2+2=", "4", "4", "5")
