"""The linear probe on features that carry the operation, and on features that do not."""

import numpy as np
import pytest

from broca.stress_tests.probing import probe

OPERANDS = 24


@pytest.fixture
def prompts():
    """Two operations on the same operands: labels, operands, templates and operand tokens."""
    labels = np.repeat([0, 1], OPERANDS)
    operands = np.tile(np.arange(OPERANDS), 2)
    tokens = np.stack([operands, operands % 5], axis=1)
    return labels, operands, np.zeros(2 * OPERANDS, dtype=int), tokens


def test_a_present_feature_is_decoded(prompts):
    """The probe decodes a feature that carries the operation on held-out operands."""
    labels, operands, templates, tokens = prompts
    noise = np.random.default_rng(0).normal(size=(len(labels), 5))
    outputs = np.column_stack([labels + 0.1 * noise[:, 0], noise[:, 1:]])
    result = probe(outputs, tokens, labels, operands, templates)
    assert result.accuracy == 1.0
    assert result.shuffled < 0.75
    assert result.surface == result.chance == 0.5
    assert result.templates is None
    assert result.items == 48


def test_noise_is_not_decoded(prompts):
    """The probe's accuracy on noise is below 0.75, near chance."""
    labels, operands, templates, tokens = prompts
    noise = np.random.default_rng(0).normal(size=(len(labels), 5))
    assert probe(noise, tokens, labels, operands, templates).accuracy < 0.75


def test_templates_are_left_out_in_turn(prompts):
    """A feature whose meaning flips between templates has accuracy 0 on the held-out template."""
    labels, operands, _, tokens = prompts
    templates = operands % 2
    outputs = (labels ^ templates)[:, None] + 0.0
    assert probe(outputs, tokens, labels, operands, templates).templates == 0.0
