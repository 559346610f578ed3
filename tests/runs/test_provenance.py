"""The description of the model and of the verification in results."""

from dataclasses import replace

import numpy as np
import pytest
from simulated import SimulatedTask, five_tasks, toy_verification

from broca.engine import Ablation
from broca.models import GatedModel
from broca.results.base import ModelInfo
from broca.runs.provenance import model_info, verification_of
from broca.testing import tiny_llama, tiny_tokenizer
from broca.verification import Trial

HEADS = [f"L{layer}H0" for layer in range(4)]


def test_a_model_is_described_by_its_shape_and_its_weights(tiny):
    """Equal weights under another name have the same fingerprint; changed weights have another."""
    info = model_info(tiny)
    assert (info.name, info.layers, info.heads, info.kv_heads) == ("tiny", 2, 4, 2)
    assert (info.architecture, info.dtype) == ("LlamaForCausalLM", "float32")
    renamed = model_info(GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="other"))
    assert replace(renamed, name="tiny") == info
    changed = tiny_llama()
    changed.lm_head.weight.data[0, 0] += 1
    again = GatedModel.wrap(changed, tiny_tokenizer(), name="tiny")
    assert model_info(again).fingerprint != info.fingerprint


def scores(examiner, heads):
    """Returns the scores before and after, and the examination of the simulated model."""
    examined = examiner.examine(heads, report=lambda text: None)
    return examined.before, examined.after, examined


@pytest.fixture(scope="module")
def measured():
    """The scores of five simulated tasks with the first task's heads ablated."""
    examiner = five_tasks().examiner(curve=0)
    return examiner, *scores(examiner, HEADS)


def test_drops_are_differences_of_scores(measured):
    """Drops have roles, and the specific drop is the task's minus the mean of the others."""
    examiner, before, after, _ = measured
    verification = verification_of(
        ModelInfo("toy", "abc"), HEADS, Ablation(seed=4), examiner.trial, before, after, rows=7
    )
    losses = {name: before[name] - after[name] for name in before}
    assert {line.task: line.drop for line in verification.drops} == pytest.approx(losses)
    assert [line.role for line in verification.drops] == ["task"] + ["other"] * 4
    others = [loss for name, loss in losses.items() if name != "adding"]
    assert verification.off_target_drop == pytest.approx(sum(others) / 4)
    assert verification.specific_drop == pytest.approx(losses["adding"] - sum(others) / 4)
    assert (verification.heads, verification.seed, verification.rows) == (tuple(HEADS), 4, 7)
    assert verification.verdict is None
    assert all(line.p is None for line in verification.drops)


def claimed(task, before, after, **benchmark):
    """Returns the verification of heads of a single task with two scores."""
    trial = Trial(task, (), (), {task: SimulatedTask(**benchmark)}, {task: np.arange(2)})
    return verification_of(
        ModelInfo("toy", "abc"), HEADS, Ablation(), trial, {task: before}, {task: after}, rows=2
    )


def test_without_others_there_is_no_off_target_drop():
    """Without other tasks the off-target drop is None and the specific drop is the drop."""
    verification = claimed("a", 0.9, 0.1)
    assert verification.off_target_drop is verification.worst_other is None
    assert verification.specific_drop == verification.drop == pytest.approx(0.8)


def test_metric_where_lower_is_better_counts_the_rise():
    """A rise of a perplexity is a positive drop."""
    assert claimed("a", 3.0, 5.0, higher_is_better=False).drop == pytest.approx(2.0)


def test_an_examination_adds_intervals_tests_and_the_verdict(measured):
    """Drops, p-values and interval ends are those of the examination."""
    examiner, before, after, examined = measured
    verification = verification_of(
        ModelInfo("toy", "abc"), HEADS, Ablation(), examiner.trial, before, after,
        examination=examined, rows=7,
    )  # fmt: skip
    assert verification.verdict is examined.verdict
    for line, drop in zip(verification.drops, examined.drops, strict=True):
        assert (line.drop, line.p, line.p_holm) == (drop.drop.value, drop.p, drop.p_holm)
        assert tuple(line.ci) == (drop.drop.low, drop.drop.high)
    assert tuple(verification.specific_ci) == (examined.specific.low, examined.specific.high)
    assert toy_verification(notes=("a note",)).notes == ("a note",)
