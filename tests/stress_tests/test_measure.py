"""The stress test on models whose roles are known."""

import pytest
import torch

from broca.errors import BadInput, UnknownName
from broca.results.codec import encode
from broca.results.stress_test import Shift
from broca.results.verification import Interval
from broca.stress_tests.families import load_family
from broca.stress_tests.measure import stress
from broca.stress_tests.patching import Patcher
from broca.stress_tests.prompts import operands, pairs
from broca.stress_tests.verdict import judge

SORTING = ["L3H12", "L0H3", "L3H1", "L0H4"]


@pytest.fixture(scope="module")
def sorting(planted):
    """The planted sorting heads, tested on sorting against reversing."""
    return stress(
        planted, SORTING, load_family("letters"), controls=[load_family("sums")], count=16, sets=3
    )


def test_planted_heads_transfer(sorting):
    """They carry the operation: the write beats every control, and only their family suffers."""
    assert sorting.verdict == "transfers", sorting.text
    assert sorting.self_patch == 0
    assert sorting.positive_control.low > 0
    assert sorting.probe.accuracy > 0.9 > sorting.probe.surface
    assert all(one.rank == 1 and one.selective > 1 for one in sorting.necessity)
    assert [one.ablation for one in sorting.necessity] == ["zero", "mean", "resample"]
    assert len(sorting.shifts) >= 6


def test_the_record_is_json_and_a_page(sorting):
    """All numbers in both; no figure is lost."""
    from broca.reports import render_stress_page

    html = render_stress_page(sorting)
    assert "transfers" in html
    for one in sorting.shifts:
        assert one.source in html
        assert one.source in encode(sorting)


def test_writing_replaces_exactly_what_is_named(tiny):
    """Writing zeros is the gate of 0; writing own outputs changes no bit."""
    prompts = [[5, 9, 4, 7], [8, 2, 6, 3]]
    patcher = Patcher(tiny)
    state = patcher.state(prompts)
    zeros = {point: torch.zeros_like(one) for point, one in state.items()}
    plain = patcher.log_probs(prompts)
    assert torch.equal(
        patcher.log_probs(prompts, [1, 5], zeros), patcher.log_probs(prompts, [1, 5])
    )
    assert torch.equal(patcher.log_probs(prompts, range(8), state), plain)
    assert not torch.equal(patcher.log_probs(prompts, [1]), plain)


def test_a_write_at_some_tokens_leaves_the_others(tiny):
    """Against a hook of its own that overwrites one head at one token."""
    prompts = [[5, 9, 4, 7]]
    patcher = Patcher(tiny)
    state = patcher.state(prompts)
    outputs = patcher.heads_of(state, [2])
    outputs[:, 1] = 3.0
    found = patcher.log_probs(prompts, [2], patcher.with_heads(state, [2], outputs))

    def hook(_module, args):
        changed = args[0].clone()
        changed[:, 1, 16:24] = 3.0
        return (changed,)

    handle = tiny.model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(hook)
    with torch.no_grad():
        expected = tiny.model(torch.tensor(prompts)).logits[:, -1].log_softmax(-1)
    handle.remove()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def shift(value, name="x", copying=None, beyond=1.0):
    """A shift of some size, with narrow intervals."""
    near = [None if v is None else Interval(v, v - 0.1, v + 0.1) for v in (value, copying, beyond)]
    return Shift(name, *near)


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
    """First match first; a failed positive control settles it."""
    found, text = judge([real, *controls], Interval(positive, positive - 0.1, positive + 0.1))
    assert found == label
    assert text.endswith(".")


def test_pairs_have_four_different_answers(planted):
    """A(v), B(v), A(u) and B(u) begin differently, and prompts are of one length."""
    found = operands(load_family("letters"), planted.tokenizer, limit=40)
    assert len({len(p) for one in found for p in one.prompts.values()}) == 1
    for one in pairs(load_family("letters"), found, count=20, seed=0):
        u, v = found[one.source], found[one.target]
        assert len({*v.answers.values(), *u.answers.values()}) == 4
        assert one.asked != one.own


def test_families_of_your_own_are_checked(tmp_path, planted):
    """One line each."""
    with pytest.raises(UnknownName, match="did you mean 'letters'"):
        load_family("leters")
    file = tmp_path / "mine.yaml"
    file.write_text("family: mine\ntemplates: ['{operation}']\noperations: {a: b}\n")
    with pytest.raises(BadInput, match="cannot be used"):
        load_family(file)
    sums = load_family("sums")
    found = operands(sums, planted.tokenizer, limit=20)
    with pytest.raises(BadInput, match="one operation"):
        pairs(sums, found, count=8, seed=0)
    with pytest.raises(BadInput, match="no heads are named"):
        stress(planted, [], load_family("letters"))
