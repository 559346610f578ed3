"""The measures of a stress test, on a model with planted heads and on made-up vectors."""

from types import SimpleNamespace

import numpy as np
import pytest

from broca.errors import SelfTestFailed
from broca.results.base import Interval
from broca.results.stress_test import Shift
from broca.stress_tests import properties
from broca.stress_tests.patcher import Ablated, OutputsOf
from broca.stress_tests.subject import Operand, PromptPair, TokenizedFamily


def test_shares_are_of_the_damage():
    """A part that restores one of five lost nats has a share of 0.2, as unsure as the damage."""
    damage = np.linspace(1, 9, 40)

    def observe(observations):
        lost = [damage * bool(seen.columns) - (seen.write != Ablated()) for seen in observations]
        return [np.stack([-nats, 0 * nats], axis=1).ravel() for nats in lost]

    made = SimpleNamespace(
        names=("L0H1",), columns=(1,), head_dim=4,
        family=SimpleNamespace(prompts=((1,),) * 40, answers=((3, 4),) * 40),
    )  # fmt: skip
    (last, before) = properties.reversal(observe, made)
    assert (last.part, before.part) == ("the last token", "all but the last token")
    assert last.share.value == before.share.value == pytest.approx(0.2)
    drawn = np.random.default_rng(0).choice(damage, (4000, 40)).mean(axis=1)
    ends = np.quantile(1 / drawn, [0.025, 0.975])
    np.testing.assert_allclose([last.share.low, last.share.high], ends, rtol=0.03)
    assert not properties.reversal(lambda asked: [np.zeros(80) for _ in asked], made)


def test_the_same_answer_is_a_control_where_every_pair_has_one():
    """The control's source is a prompt of the operation, the target's answer and its template."""

    def operand(place, template):
        prompts = {"a": (1, place, template), "b": (2, place, template), None: (3, place, template)}
        return Operand(prompts, {"a": 10 + place, "b": 13 - place}, template)

    others, operands = ([operand(place, template) for place in range(4)] for template in (1, 0))
    family = TokenizedFamily("mine", ("a", "b"), (*others, *operands))
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
    assert all(shift.copying for shift in shifts)
    # Operands 1 (operation b) and 2 (operation a) answer 12; 3 (a) and 0 (b) answer 13.
    assert seen[place] == OutputsOf(((1, 2, 0), (2, 0, 0)))


def test_a_self_patch_that_changes_anything_ends_the_test():
    """Any change when a prompt's own outputs are written raises `SelfTestFailed`."""
    operand = Operand({"a": (1,), "b": (2,)}, {"a": 3, "b": 4}, 0)
    made = SimpleNamespace(columns=(1,), pairs=(PromptPair(operand, operand, "a", "b"),))

    def observe(observations):
        return [np.array([bool(seen.columns) / 4, 0, 0], np.float32) for seen in observations]

    with pytest.raises(SelfTestFailed, match=r"changes a log-probability by 0\.25"):
        properties.self_patch(observe, made)


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
        (shift(0, copying=2), [shift(0, "noise of the same norm", copying=2)], 5, "inert"),
        (shift(1, copying=4), [shift(0, "an unrelated family", copying=4)], 5, "transfers"),
        (shift(3), [shift(3, "noise of the same norm", beyond=0)], 5, "broad-state"),
        (shift(3), [shift(3, "random heads", beyond=0)], 5, "soft"),
    ],
)
def test_the_rule(real, controls, positive, label):
    """The first matching rule gives the label; a failed positive control is inconclusive."""
    interval = Interval(positive, positive - 0.1, positive + 0.1)
    verdict, text = properties.judge([real, *controls], interval)
    assert verdict == label
    assert text.endswith(".")
