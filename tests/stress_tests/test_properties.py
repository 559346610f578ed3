"""The measures of a stress test, on a model with planted heads and on made-up vectors."""

from types import SimpleNamespace

import numpy as np
import pytest
from stress_tests.conftest import observer

from broca.errors import SelfTestFailed
from broca.results.base import Interval
from broca.results.stress_test import Shift
from broca.stress_tests import properties
from broca.stress_tests.patcher import Ablated, OutputsOf
from broca.stress_tests.subject import (
    Operand,
    PromptPair,
    StressSubject,
    TokenizedFamily,
    load_family,
)

SORTING = ("L3H12", "L0H3", "L3H1", "L0H4")

CONTROLS = [
    "the same operation, other operands", "the operation word neutralised",
    "an unrelated family", "noise of the same norm", "random heads",
]  # fmt: skip
"""The controls of the transfer. No pair of letters has a source with the target's answer."""


@pytest.fixture(scope="module")
def observe(planted):
    """A function that measures observations on the planted model without a journal."""
    return observer(planted)


@pytest.fixture(scope="module")
def subject(planted):
    """The planted sorting heads, tested on sorting against reversing."""
    families = [load_family("letters"), load_family("sums")]
    return StressSubject(planted, SORTING, families, pairs=16, sets=3, seed=0)


@pytest.mark.parametrize("kind", ["zero", "mean", "resample"])
def test_planted_heads_are_selectively_necessary(observe, subject, kind):
    """Ablation lowers the letters' margin more than random sets, and over 1 nat more than sums'."""
    measured = properties.necessity(observe, subject, kind)
    assert measured.ablation == kind
    assert measured.rank == 1
    assert measured.selective > 1
    assert len(measured.null) == 3
    assert measured.drop.low <= measured.drop.value <= measured.drop.high
    assert measured.selective == measured.drop.value - measured.controls["sums"]


def test_strict_parts_are_restored(observe, subject):
    """`reversal` restores each head, the last token, all other tokens, and four dimensions."""
    parts = properties.reversal(observe, subject)
    assert [part.part for part in parts] == [
        *(f"{name} alone" for name in SORTING), "the last token", "all but the last token",
        "4 of 64 dimensions",
    ]  # fmt: skip
    assert all(part.share.low <= part.share.value <= part.share.high for part in parts)


def test_shares_are_of_the_damage():
    """A part that restores three of four lost nats has a share of 0.75."""

    def observe(observations):
        margins = [
            5.0 if not seen.columns else 1.0 if seen.write == Ablated() else 4.0
            for seen in observations
        ]
        return [np.array([0, -margin] * 2, dtype=np.float32) for margin in margins]

    made = SimpleNamespace(
        names=("L0H1",), columns=(1,), head_dim=4,
        family=SimpleNamespace(prompts=((1,), (2,)), answers=((3, 4), (3, 4))),
    )  # fmt: skip
    (last, before) = properties.reversal(observe, made)
    assert (last.part, before.part) == ("the last token", "all but the last token")
    assert last.share.value == before.share.value == 0.75
    assert not properties.reversal(lambda asked: [np.zeros(4, np.float32) for _ in asked], made)


def test_planted_heads_transfer(observe, subject):
    """Writing the planted heads moves the target to the source's operation beyond every control."""
    real, *controls = properties.transfer(observe, subject)
    assert real.source == "the other operation"
    assert real.transfer.low > 0
    assert real.copying is not None
    assert [control.source for control in controls] == CONTROLS
    assert all(control.beyond.low > 0 for control in controls)
    assert properties.positive_control(observe, subject).low > 0


def test_the_same_answer_is_a_control_where_every_pair_has_one():
    """The control's source is a prompt of the source's operation with the target's answer."""
    operands = tuple(
        Operand(
            {"a": (1, place), "b": (2, place), None: (3, place)},
            {"a": 10 + place, "b": 13 - place},
            0,
        )
        for place in range(4)
    )
    family = TokenizedFamily("mine", ("a", "b"), operands)
    two_pairs = SimpleNamespace(
        family=family, columns=(1,), random_sets=(), controls=(), seed=0,
        pairs=(PromptPair(*operands[:2], "a", "b"), PromptPair(*operands[2:], "b", "a")),
    )  # fmt: skip
    seen = []

    def observe(observations):
        seen.extend(observation.write for observation in observations[1:])
        return [np.zeros(6, dtype=np.float32) for _ in observations]

    shifts = properties.transfer(observe, two_pairs)
    place = [shift.source for shift in shifts].index("the same answer from the other operation")
    # Operands 1 (operation b) and 2 (operation a) answer 12; 3 (a) and 0 (b) answer 13.
    assert seen[place] == OutputsOf(((1, 2), (2, 0)))


def test_a_self_patch_that_changes_anything_ends_the_test(observe, subject):
    """Writing a prompt's own outputs changes no bit; any change raises `SelfTestFailed`."""
    assert properties.self_patch(observe, subject) == 0
    with pytest.raises(SelfTestFailed, match=r"changes a log-probability by 0\.25"):
        properties.self_patch(lambda observations: [np.array([0, 0.25], dtype=np.float32)], subject)


def made_probe(outputs, templates=lambda operand: 0):
    """Returns the probe of two operations on 24 operands with the given outputs."""
    operands = tuple(
        Operand({"a": (), "b": (), None: (number, number % 5)}, {}, templates(number))
        for number in range(24)
    )
    family = TokenizedFamily("made", ("a", "b"), operands)
    vector = np.asarray(outputs, dtype=np.float32)
    made = SimpleNamespace(family=family, columns=(1,), seed=0)
    return properties.decodability(lambda _: [vector.ravel()], made)


def test_a_present_feature_is_decoded_and_noise_is_not():
    """The probe reads a feature on held-out operands; noise, labels and operands are chance."""
    labels, noise = np.repeat([0, 1], 24), np.random.default_rng(0).normal(size=(48, 5))
    result = made_probe(np.column_stack([labels + 0.1 * noise[:, 0], noise[:, 1:]]))
    assert result.accuracy == 1.0
    assert result.shuffled < 0.75
    assert result.surface == result.chance == 0.5
    assert (result.templates, result.items) == (None, 48)
    assert made_probe(noise).accuracy < 0.75


def test_templates_are_left_out_in_turn():
    """A feature whose meaning flips between templates has accuracy 0 on the held-out template."""
    labels, operands = np.repeat([0, 1], 24), np.tile(np.arange(24), 2)
    outputs = (labels ^ operands % 2)[:, None]
    assert made_probe(outputs, lambda operand: operand % 2).templates == 0.0


def shift(value, name="x", copying=None, beyond=1.0):
    """Returns a shift of the given size with narrow intervals."""
    narrow = [
        None if v is None else Interval(v, v - 0.1, v + 0.1) for v in (value, copying, beyond)
    ]
    return Shift(name, *narrow)


@pytest.mark.parametrize(
    ("real", "controls", "positive", "label"),
    [
        (shift(3), [shift(0)], 5, "transfers"),
        (shift(3), [shift(0)], 0, "inconclusive"),
        (shift(0, copying=0), [shift(0)], 5, "inert"),
        (shift(0, copying=2), [shift(0)], 5, "answer-bias"),
        (shift(1, copying=4), [shift(0)], 5, "answer-bias"),
        (shift(3), [shift(3, "noise of the same norm", beyond=0)], 5, "broad-state"),
        (shift(3), [shift(3, "random heads", beyond=0)], 5, "soft"),
    ],
)
def test_the_rule(real, controls, positive, label):
    """The first matching rule gives the label; a failed positive control is inconclusive."""
    verdict, text = properties.judge(
        [real, *controls], Interval(positive, positive - 0.1, positive + 0.1)
    )
    assert verdict == label
    assert text.endswith(".")
