"""Verification and its parts, on simulated models with known effects."""

from dataclasses import replace

import numpy as np
import pytest
from simulated import COMPONENTS, MiddleTask, SimulatedModel, SimulatedTask, five_tasks

from broca.engine import Ablation
from broca.measurement import Measurement, Plan
from broca.results.base import ModelInfo
from broca.verification import Evidence, Trial, plain_verification
from broca.verification.sufficiency import KeptScores

INFO = ModelInfo("toy", "abc")
TASK_HEADS = [f"L{layer}H0" for layer in range(4)]


def examined(model, heads, **options):
    """Returns the verification of some heads."""
    return model.examiner(**options).examine(heads, report=lambda text: None)


def test_the_task_s_own_heads_are_specific():
    """A set that costs only its task beats all random sets, and every member is needed."""
    verification = examined(five_tasks(), TASK_HEADS)
    assert verification.verdict.label == "specific", verification.verdict
    assert all(member.needed for member in verification.members)
    assert [control.kind for control in verification.controls] == ["layers", "norm"]
    for control in verification.controls:
        assert (control.specific.rank, len(control.sets)) == (1, 39)
    assert [drop.role for drop in verification.drops] == ["task", *["other"] * 4]
    assert len(verification.samples) == verification.failures[0].items


@pytest.mark.parametrize(("babble", "label"), [(False, "universal"), (True, "breaks the model")])
def test_damage_to_every_task_is_universal_or_breaks_the_model(babble, label):
    """Wrong answers in well-formed outputs make a set universal; repeated words break the model."""
    model = five_tasks(everyone={"L0H5": 0.9}, babble=babble)
    assert model.verdict(["L0H5", "L4H1"]).label == label


def test_inert_heads_are_not_localized():
    """On 80 items, two heads without effect are not localized, for which no random set is needed.

    Without outputs the verdict is based on scores alone.
    """
    verification = examined(five_tasks(), ["L5H1", "L5H2"])
    assert verification.verdict.label == "not localized at head level"
    assert verification.controls == ()
    ahead = examined(five_tasks(), TASK_HEADS, controls=25, failure_items=0)
    assert {len(control.sets) for control in ahead.controls} == {25}
    assert (ahead.failures, ahead.samples, ahead.verdict.label) == ((), (), "specific")


def test_few_rows_decide_random_sets_that_are_far_and_a_budget_holds():
    """Most random sets have 16 items of the task; with few rows fewer sets are measured.

    A set that costs 13 % of 200 items is compared with all of them: no set needs other tasks. Sets
    that cost the task as much, and another task too, are behind after 64 items of both.
    """
    verification = examined(five_tasks(), TASK_HEADS)
    items = [drawn.items for control in verification.controls for drawn in control.sets]
    assert np.mean(np.array(items) == 16) > 0.8
    model = five_tasks()
    examined(model, TASK_HEADS, controls=0)
    most, model.rows = model.rows + 600, 0
    few = examined(model, TASK_HEADS, rows=most)
    assert model.rows <= most
    assert 0 < len(few.controls[0].sets) < 39
    assert (few.verdict.label, few.verdict.provisional) == ("inconclusive", True)
    assert examined(model, TASK_HEADS, rows=1).controls == ()
    weak = SimulatedModel({"a": {"L0H0": 0.13}, "b": {"L1H1": 0.9}}, items=200)
    sets = [drawn for control in examined(weak, ["L0H0"]).controls for drawn in control.sets]
    assert {(drawn.items, drawn.specific_drop) for drawn in sets} == {(32, None)}
    all_other = dict.fromkeys(COMPONENTS.names[1:], 0.6)
    broad = SimulatedModel({"a": {"L0H0": 0.6}, "b": {}}, everyone=all_other, items=100)
    for control in examined(broad, ["L0H0"], controls=5).controls:
        assert (control.specific.rank, *(one.items for one in control.sets)) == (1, *[64] * 5)


def test_tasks_at_chance_are_no_controls():
    """A task that the intact model cannot do enters no mean; others count by what they can lose."""
    model = SimulatedModel({"a": {"L0H0": 0.9}, "b": {}, "c": {"L0H0": 0.9}})
    trial = model.examiner().trial.judged({"a": 0.95, "b": 0.5, "c": 0.0})
    assert (trial.others, trial.at_chance) == (("b",), ("c",))
    off_target, specific = trial.specific(np.array([0.8, 0.1]))
    assert (off_target, specific) == pytest.approx((0.1, 0.7))
    both = model.examiner().trial.judged({"a": 0.95, "b": 0.5, "c": 0.25})
    assert both.specific(np.array([0.8, 0.1, 0.4]))[0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("garbled", "label"), [(0.1, "specific"), (0.5, "specific"), (1.5, "breaks the model")]
)
def test_a_change_of_the_model_s_text_is_said_first(garbled, label):
    """A nat per token breaks the model; half of one is stated in the headline."""
    model = SimulatedModel({"a": {"L0H0": 0.9}, "b": {}, "c": {}}, garbled=garbled)
    verification = examined(model, ["L0H0"])
    assert verification.verdict.label == label
    assert ("nats per token" in verification.headline) == (garbled > 0.3)


def test_idle_members_leave_the_set_before_the_claim():
    """The claim of a search names only what is needed, the core first; named sets keep all."""
    model = SimulatedModel({"a": {"L0H0": 0.9, "L1H0": 0.2}, "b": {}, "c": {}})
    heads = ["L0H0", "L1H0", "L2H2", "L3H3", "L4H4"]
    named = examined(model, heads)
    assert [member.needed for member in named.members] == [True, True, False, False, False]
    assert (named.heads, named.verdict.label) == (tuple(heads), "partly specific")
    found = model.examiner().examine(heads, report=lambda text: None, drops_idle=True)
    assert (found.heads, found.dropped) == (("L0H0", "L1H0"), ("L2H2", "L3H3", "L4H4"))
    assert found.core == ("L0H0",)
    assert found.headline.startswith("toy needs L0H0 for a; with them L1H0 (adds ")


@pytest.mark.parametrize(
    ("heads", "needed"), [(TASK_HEADS[:2], True), (TASK_HEADS, False)], ids=["two", "four"]
)
def test_members_that_stand_in_for_each_other_do_not_leave(heads, needed):
    """If any two ablated heads cost the task, both of two are needed, and none of four is idle."""

    class Backups(SimulatedModel):
        def _lost_to(self, mask, position):
            lost = mask[COMPONENTS.columns(heads)].sum() >= 2
            return "own" if lost and self.items[position].task == "a" else None

    model = Backups({"a": {}, "b": {}, "c": {}})
    found = model.examiner().examine(heads, report=lambda text: None, drops_idle=True)
    assert (found.heads, found.dropped) == (tuple(heads), ())
    assert [member.needed for member in found.members] == [needed] * len(heads)


def test_tasks_of_the_same_skill_are_no_controls():
    """The losses of a task of the same skill do not count against the set."""
    shared = {"L0H0": 0.9, "L1H0": 0.9}
    model = SimulatedModel({"a": shared, "b": shared, "c": {}, "d": {}})
    assert model.verdict(["L0H0", "L1H0"]).label == "partly specific"
    verification = examined(model, ["L0H0", "L1H0"], same_skill=["b"])
    assert verification.verdict.label == "specific"
    assert [drop.task for drop in verification.roles("same_skill")] == ["b"]


def test_every_kind_of_ablation_is_checked():
    """Each kind of ablation is examined; one without effect does not survive."""
    model, inert = five_tasks(), SimulatedModel({name: {} for name in five_tasks().heads})
    examiner = replace(model.examiner(), kinds={"zero": model.execute, "mean": inert.execute})
    zero, mean = examiner.examine(TASK_HEADS, report=lambda text: None).ablations
    assert (zero.kind, zero.survives) == ("zero", True)
    assert (mean.kind, mean.survives, mean.drop.value) == ("mean", False, 0.0)


def test_drops_are_those_of_the_responses():
    """Drops, off-target drop and specific drop equal means of the responses.

    The order of the other tasks changes no interval.
    """
    model = five_tasks()
    verification = examined(model, TASK_HEADS)
    mask = np.zeros((2, 96), dtype=bool)
    mask[1, COMPONENTS.columns(TASK_HEADS)] = True
    values = model.execute(Plan.crossed(mask, np.arange(80))).responses.reshape(2, 80).mean(1)
    claimed, *others = verification.drops
    assert (claimed.before, claimed.after) == pytest.approx(tuple(values))
    assert claimed.ci[0] <= claimed.drop <= claimed.ci[1]
    mean = np.average([drop.drop for drop in others], weights=[drop.before for drop in others])
    assert verification.off_target.value == pytest.approx(mean)
    assert verification.specific.value == pytest.approx(claimed.drop - mean)
    examiner = five_tasks(everyone={"L0H1": 0.2}).examiner()
    turned = replace(examiner, trial=replace(examiner.trial, others=examiner.trial.others[::-1]))
    found = [one.examine([*TASK_HEADS, "L0H1"], report=str) for one in (examiner, turned)]
    ends, again = ([*one.off_target_ci, *one.specific_ci] for one in found)
    assert again == pytest.approx(ends, abs=1e-12)


def test_few_items_that_all_stay_the_same_leave_the_mean_of_the_others_open():
    """The mean of one other task is as uncertain as its drop, of several less; so is the rest."""
    own, others = {"L0H0": 1.0}, {f"other {n}": {} for n in range(4)}
    for names in (["other 0"], [*others]):
        found = examined(
            SimulatedModel({"a": own, **{name: {} for name in names}}, items=12), ["L0H0"]
        )
        (drop, *_) = found.roles("other")
        high = drop.interval.high / len(names) ** 0.5
        assert drop.drop == found.off_target.value == 0
        assert found.off_target.high == pytest.approx(high)
        assert found.specific.value - found.specific.low > high > 0.1


def test_a_member_whose_ablation_helps_does_not_contribute():
    """What a member gains alone, however certain, is no loss; what it costs decides."""
    model = SimulatedModel({"a": {}, "b": {}}, items=100)
    right = [60, 20, 80, 20, 21, 60]  # intact, the set, each alone, all but the first, the second
    rows = np.array([np.arange(100) < count for count in right], dtype=float)
    model.execute = lambda plan: Measurement(plan, rows[plan.mask_index, plan.item_index])
    members, _ = model.examiner()._members([0, 1])
    assert [round(member.alone.value, 2) for member in members] == [-0.2, 0.4]
    assert [member.needed for member in members] == [False, True]


def test_a_score_that_weighs_its_items_is_tested_itself(monkeypatch):
    """Equal or symmetric parts hide no weights; the p-value is that of the weighted score.

    Intervals reach as far as unseen items of both weights may; random sets have some or all items.
    """
    everything = dict.fromkeys(COMPONENTS.names, 0.6)
    examiner = SimulatedModel({"b": everything | {"L0H0": 0.75}, "a": {}}, items=100).examiner()
    trial = replace(examiner.trial, benchmarks={"a": MiddleTask(), "b": SimulatedTask()})
    rows = {name: np.ones((2, 100)) for name in "ab"}
    evidence = Evidence(trial, examiner.scope, rows)
    assert trial.aggregation("a", rows["a"][0]) is not None is trial.aggregation("b", rows["b"][0])
    (drop, *tested), other = map(evidence.compared, "ab")
    assert (tested, other[1:]) == (["permutation", 1.0], ("mcnemar", 1.0))
    heavy = np.linspace(0, 1 - 0.025**0.1, 1000)
    light = 1 - (0.025 / (1 - heavy) ** 10) ** (1 / 90)
    assert drop.high == pytest.approx(max(heavy + light) / 2, abs=1e-5)
    rows["a"][1, 45:48] = 0
    drop, _, p = evidence.compared("a")
    assert (drop.value, drop.low, drop.high) == pytest.approx((0.15, 0, 0.3), abs=0.02)
    assert p == pytest.approx(0.25, abs=0.06)
    found = replace(examiner, trial=trial).examine(["L0H0"], report=lambda text: None)
    sets = [drawn for control in found.controls for drawn in control.sets]
    assert {drawn.items for drawn in sets} == {16, 100}
    before, after = np.arange(100) != 50, np.arange(100) >= 9
    kept = {frozenset([0]): 1.0 * before, frozenset(): 1.0 * after}
    scores = KeptScores("a", {}, kept, frozenset(), 1.0, 0.05, trial.aggregation("a", before))
    assert scores.p(*kept) == 1.0  # nine items of 90, and one of ten, which weigh as much
    asked = []
    monkeypatch.setattr(MiddleTask, "at_chance", lambda _, score, *, items: asked.append(items))
    trial.judged({"a": 0.5, "b": 0.5})
    assert asked == [36]


def test_without_statistics_there_are_only_drops():
    """Drops and specific drop are differences of scores; without others nothing is specific."""
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
    lower = Trial("a", (), (), {"a": SimulatedTask(higher_is_better=False)}, {"a": [0, 1]})
    plain = plain_verification(INFO, [], Ablation(), lower, {"a": 0.3}, {"a": 0.5})
    assert plain.drop == pytest.approx(0.2)
    assert (plain.off_target_drop, plain.specific_drop) == (None, None)
