"""Verification and its parts, on simulated models with known effects."""

from dataclasses import replace

import numpy as np
import pytest
from simulated import COMPONENTS, SimulatedModel, SimulatedTask, five_tasks

from broca.engine import Ablation
from broca.measurement import Plan
from broca.results.base import ModelInfo
from broca.verification import Trial, plain_verification

INFO = ModelInfo("toy", "abc")
TASK_HEADS = [f"L{layer}H0" for layer in range(4)]


def examined(model, heads, *, order=(), **options):
    """Returns the verification of some heads."""
    return model.examiner(**options).examine(heads, order=order, report=lambda text: None)


def test_the_task_s_own_heads_are_specific():
    """A set that costs only its task beats all random sets, and every member is needed."""
    verification = examined(five_tasks(), TASK_HEADS)
    assert verification.verdict.label == "specific", verification.verdict
    assert all(member.needed for member in verification.members)
    assert [control.kind for control in verification.controls] == ["layers", "norm"]
    for control in verification.controls:
        assert (control.drop.rank, len(control.sets)) == (1, 39)
    assert [drop.role for drop in verification.drops] == ["task", *["other"] * 4]
    assert len(verification.samples) == 10


@pytest.mark.parametrize(("babble", "label"), [(False, "universal"), (True, "breaks the model")])
def test_damage_to_every_task_is_universal_or_breaks_the_model(babble, label):
    """Wrong answers in well-formed outputs make a set universal; repeated words break the model."""
    model = five_tasks(everyone={"L0H5": 0.9}, babble=babble)
    assert model.verdict(["L0H5", "L4H1"]).label == label


def test_inert_heads_are_not_localized():
    """On 80 items, two heads without effect are not localized, which twenty random sets show.

    Without outputs the verdict is based on scores alone.
    """
    verification = examined(five_tasks(), ["L5H1", "L5H2"])
    assert verification.verdict.label == "not localized at head level"
    assert {len(control.sets) for control in verification.controls} == {20}
    assert all(control.drop.p > 0.05 for control in verification.controls)
    ahead = examined(five_tasks(), TASK_HEADS, controls=13, failure_items=0)
    assert {len(control.sets) for control in ahead.controls} == {25}
    assert (ahead.failures, ahead.samples, ahead.verdict.label) == ((), (), "specific")


def test_redundant_heads_count_as_members():
    """Two heads that replace each other cost nothing alone; both are needed members."""

    class Redundant(SimulatedModel):
        def _lost_to(self, mask, position):
            ablated = mask[COMPONENTS.column("L0H0")] and mask[COMPONENTS.column("L1H0")]
            return "own" if ablated and self.items[position].task == "a" else None

    verification = examined(Redundant({"a": {}, "b": {}, "c": {}}), ["L0H0", "L1H0"])
    assert verification.verdict.label == "specific"
    for member in verification.members:
        assert (member.alone.value, member.needed, member.other_members) == (0, True, "ablated")
        assert len(member.changes) == 3
        assert all(change.before == change.target != change.after for change in member.changes)


def test_each_member_shows_outputs_that_it_changes():
    """A needed member shows outputs that it makes wrong; passengers show none, and do not count."""
    model = SimulatedModel({"a": {"L0H0": 0.9, "L1H0": 0.1}, "b": {}, "c": {}})
    verification = examined(model, ["L0H0", "L1H0", "L2H2", "L3H3", "L4H4"])
    first, second, *inert = verification.members
    assert len(first.changes) == 3
    for member in (first, second):
        assert member.other_members == "intact"
        assert all(change.before == change.target != change.after for change in member.changes)
    assert [(member.changes, member.needed) for member in inert] == [((), False)] * 3
    assert verification.verdict.label == "partly specific"


@pytest.mark.parametrize("heads", [["L0H0"], ["L0H0", "L1H0", "L2H2"]])
def test_each_member_is_measured_alone_on_every_other_task(heads):
    """A member's drop on another task equals that of its single ablation on that task."""
    model = SimulatedModel({"a": {"L0H0": 0.9}, "b": {"L1H0": 0.5}, "c": {"L0H0": 0.4}})
    members = examined(model, heads).members
    for member in members:
        for drop in model.examiner().drops_of([member.head], ["b", "c"]):
            measured = member.elsewhere[drop.task]
            assert measured.low <= measured.value <= measured.high
            assert measured.value == pytest.approx(drop.drop, abs=0.15)
        assert set(member.elsewhere) == {"b", "c"}
    assert members[0].elsewhere["c"].low > 0.1
    assert members[0].elsewhere["b"].value == 0


def test_tasks_of_the_same_skill_are_no_controls():
    """The losses of a task of the same skill do not count against the set."""
    shared = {"L0H0": 0.9, "L1H0": 0.9}
    model = SimulatedModel({"a": shared, "b": shared, "c": {}, "d": {}})
    assert model.verdict(["L0H0", "L1H0"]).label == "partly specific"
    verification = examined(model, ["L0H0", "L1H0"], same_skill=["b"])
    assert verification.verdict.label == "specific"
    assert [drop.task for drop in verification.roles("same_skill")] == ["b"]


def test_the_curve_grows_and_becomes_flat():
    """A curve over four heads, of which two matter, is flat from two heads on."""
    model = SimulatedModel({"a": {"L0H0": 0.6, "L1H0": 0.6}, "b": {}, "c": {}})
    order = ["L0H0", "L1H0", "L4H1", "L4H2"]
    curve = examined(model, order[:2], order=order, curve=10).curve
    assert [point.k for point in curve.points] == [0, 1, 2, 3, 4]
    drops = [point.drop.value for point in curve.points]
    assert drops[0] == 0 < drops[1] < drops[2] == drops[3] == drops[4]
    assert curve.flat_at == 2
    assert all(abs(point.others.value) < 0.05 for point in curve.points)
    assert curve.points[1].same_skill is None


def test_every_kind_of_ablation_is_checked():
    """Each kind of ablation is examined; one without effect does not survive."""
    model, inert = five_tasks(), SimulatedModel({name: {} for name in five_tasks().heads})
    examiner = replace(model.examiner(), kinds={"zero": model.execute, "mean": inert.execute})
    zero, mean = examiner.examine(TASK_HEADS, report=lambda text: None).ablations
    assert (zero.kind, zero.survives) == ("zero", True)
    assert (mean.kind, mean.survives, mean.drop.value) == ("mean", False, 0.0)


def test_drops_are_those_of_the_responses():
    """Drops, off-target drop and specific drop equal means of the responses."""
    model = five_tasks()
    verification = examined(model, TASK_HEADS)
    mask = np.zeros((2, 96), dtype=bool)
    mask[1, COMPONENTS.columns(TASK_HEADS)] = True
    values = model.execute(Plan.crossed(mask, np.arange(80))).responses.reshape(2, 80).mean(1)
    claimed, *others = verification.drops
    assert (claimed.before, claimed.after) == pytest.approx(tuple(values))
    assert claimed.ci[0] <= claimed.drop <= claimed.ci[1]
    mean = np.mean([drop.drop for drop in others])
    assert verification.off_target.value == pytest.approx(mean)
    assert verification.specific.value == pytest.approx(claimed.drop - mean)


def test_without_statistics_there_are_only_drops():
    """Drops and specific drop are differences of scores; without others, the drop is specific."""
    trial = five_tasks().examiner().trial
    before, after = dict.fromkeys(trial.names, 0.9), dict.fromkeys(trial.names, 0.8)
    after |= {"adding": 0.1}
    plain = plain_verification(INFO, TASK_HEADS, Ablation(seed=4), trial, before, after)
    assert {line.task: line.drop for line in plain.drops} == pytest.approx(
        {"adding": 0.8, **dict.fromkeys(trial.others, 0.1)}
    )
    assert (plain.off_target_drop, plain.specific_drop) == pytest.approx((0.1, 0.7))
    assert (plain.heads, plain.seed, plain.verdict) == (tuple(TASK_HEADS), 4, None)
    assert all(line.p is None for line in plain.drops)
    perplexity = Trial("a", (), (), {"a": SimulatedTask(higher_is_better=False)}, {"a": [0, 1]})
    plain = plain_verification(INFO, [], Ablation(), perplexity, {"a": 3.0}, {"a": 5.0})
    assert plain.specific_drop == plain.drop == pytest.approx(2.0)
    assert plain.off_target_drop is None


def test_random_sets_are_rarely_called_specific():
    """At most 7 % of 40 random sets are specific; `benchmarks/false_positives.py` takes 200."""
    rng = np.random.default_rng(0)
    examiner = five_tasks(items=40).examiner()
    called = 0
    for _ in range(40):
        heads = [COMPONENTS.names[c] for c in rng.choice(96, 4, replace=False)]
        (task_drop,) = examiner.drops_of(heads, ["adding"])
        if task_drop.p <= 0.05:  # without a significant drop no set is specific
            verdict = examiner.examine(heads, report=lambda text: None).verdict
            called += verdict.label == "specific"
    assert called / 40 <= 0.07
