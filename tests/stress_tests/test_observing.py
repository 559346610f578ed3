"""Observations of a stress test: plain data that gives the same vector in any process."""

import pickle
from dataclasses import replace

import numpy as np
import torch
from stress_tests.observing_here import observer

from broca.stress_tests.observing import AnswerLogProbs, HeadOutputs, SelfPatch
from broca.stress_tests.patching import Patcher
from broca.stress_tests.stand_ins import Donors, Noise, OutputsOf, Zeros

PROMPTS = ((5, 9, 4, 7), (8, 2, 6, 3))
TOKENS = ((1, 2, 3), (4, 5, 6))


def test_answers_are_read_while_heads_are_written(tiny):
    """The vector has the named tokens' log-probabilities while the heads are overwritten."""
    sources = ((4, 4, 1, 2), (7, 7, 7, 1))
    with tiny.in_use():
        patcher = Patcher(tiny)
        expected = patcher.log_probs(PROMPTS, [1, 5], patcher.state(sources))
    (vector,) = observer(tiny)([AnswerLogProbs(PROMPTS, (1, 5), TOKENS, OutputsOf(sources))])
    assert vector.dtype == np.float32
    expected_vector = [float(expected[row, token]) for row in range(2) for token in TOKENS[row]]
    assert vector.tolist() == expected_vector


def test_head_outputs_are_those_at_the_last_token(tiny):
    """The vector has the named heads' outputs at the last token of every prompt."""
    with tiny.in_use():
        patcher = Patcher(tiny)
        outputs = patcher.heads_of(patcher.state(PROMPTS), [3, 0])
    (vector,) = observer(tiny)([HeadOutputs(PROMPTS, (3, 0))])
    assert torch.equal(torch.from_numpy(vector), outputs[:, -1].flatten())


def test_a_self_patch_changes_nothing(tiny):
    """A self-patch changes no prompt's log-probabilities."""
    (vector,) = observer(tiny)([SelfPatch(PROMPTS, (1, 5))])
    assert vector.tolist() == [0.0, 0.0]


def test_company_changes_no_vector(tiny):
    """Observations that are measured together equal the same observations measured alone."""
    observations = [
        AnswerLogProbs(PROMPTS, columns, TOKENS, stand_in)
        for columns in ((1,), (2, 6))
        for stand_in in (Zeros(), Donors("resample", 1), Noise(PROMPTS[::-1], 3))
    ]
    observations.insert(4, AnswerLogProbs(PROMPTS, (), TOKENS))
    together = observer(tiny)(observations)
    alone = [observer(tiny)([observation])[0] for observation in observations]
    for first, second in zip(together, alone, strict=True):
        assert np.array_equal(first, second)


def test_the_key_holds_all_that_decides(tiny):
    """Observations that differ in kind, prompts, heads, tokens or writes have different keys."""
    base = AnswerLogProbs(PROMPTS, (1, 5), TOKENS, Noise(PROMPTS, 0))
    others = [
        replace(base, prompts=PROMPTS[::-1]),
        replace(base, columns=(5, 1)),
        replace(base, tokens=TOKENS[::-1]),
        replace(base, stand_in=Noise(PROMPTS, 1)),
        replace(base, stand_in=Noise(PROMPTS[::-1], 0)),
        replace(base, stand_in=OutputsOf(PROMPTS)),
        HeadOutputs(PROMPTS, (1, 5)),
        SelfPatch(PROMPTS, (1, 5)),
    ]
    identities = {(observation.kind, observation.key) for observation in (base, *others)}
    assert len(identities) == 9


def test_observations_are_plain_data():
    """A pickled and restored observation equals the original and has the same key."""
    observation = AnswerLogProbs(PROMPTS, (1, 5), TOKENS, Noise(PROMPTS, 0))
    again = pickle.loads(pickle.dumps(observation))
    assert again == observation
    assert again.key == observation.key
    assert observation.length == 16
