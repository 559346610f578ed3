"""The whole examination, on simulated models with known effects."""

import numpy as np
import pytest
from simulated import COMPONENTS, SimulatedModel, five_tasks

TASK_HEADS = [f"L{layer}H0" for layer in range(4)]


def test_the_task_s_own_heads_are_specific():
    """A set that costs only its task beats all random sets, and every member is needed."""
    examined = five_tasks().examiner().examine(TASK_HEADS, report=lambda text: None)
    assert examined.verdict.label == "specific", examined.verdict
    assert all(member.needed for member in examined.members)
    assert [control.kind for control in examined.controls] == ["layers", "norm"]
    assert all(control.drop.rank == 1 and len(control.sets) == 39 for control in examined.controls)
    assert [drop.role for drop in examined.drops] == ["task", *["other"] * 4]
    assert len(examined.samples) == 10


def test_heads_that_every_task_needs_are_universal():
    """A set that makes every task answer wrongly, in well-formed outputs, is universal."""
    model = five_tasks(everyone={"L0H5": 0.9})
    assert model.verdict(["L0H5", "L4H1"]).label == "universal"


def test_a_set_that_makes_the_model_babble_breaks_it():
    """The same damage with repetitive outputs has the label "breaks the model"."""
    model = five_tasks(everyone={"L0H5": 0.9}, babble=True)
    verdict = model.verdict(["L0H5", "L4H1"])
    assert verdict.label == "breaks the model"
    assert "repetition" in verdict.text


def test_inert_heads_are_not_localized():
    """On 80 items, two heads without effect are not localized."""
    assert five_tasks().verdict(["L5H1", "L5H2"]).label == "not localized at head level"


def test_too_few_items_are_inconclusive_and_say_how_many_would_do():
    """A small drop on 12 items is inconclusive and comes with the number of items needed."""
    model = SimulatedModel({"a": {"L0H0": 0.15}, "b": {}}, items=12)
    verdict = model.verdict(["L0H0", "L1H1"])
    assert verdict.label == "inconclusive"
    assert verdict.items_needed > 12


def test_passengers_make_a_set_partly_specific():
    """A set of five heads of which the task needs one is partly specific."""
    model = SimulatedModel({"a": {"L0H0": 0.9}, "b": {}, "c": {}})
    verdict = model.verdict(["L0H0", "L1H1", "L2H2", "L3H3", "L4H4"])
    assert verdict.label == "partly specific"
    assert "1 of 5 members" in verdict.text


def test_redundant_heads_count_as_members():
    """Two heads that replace each other cost nothing alone; both are needed members."""

    class Redundant(SimulatedModel):
        def _lost_to(self, mask, position):
            ablated = mask[COMPONENTS.column("L0H0")] and mask[COMPONENTS.column("L1H0")]
            return "own" if ablated and self.items[position].task == "a" else None

    model = Redundant({"a": {}, "b": {}, "c": {}})
    examined = model.examiner().examine(["L0H0", "L1H0"], report=lambda text: None)
    assert [member.alone.value for member in examined.members] == [0, 0]
    assert all(member.needed for member in examined.members)
    assert examined.verdict.label == "specific"
    assert [member.other_members for member in examined.members] == ["ablated", "ablated"]
    changes = [change for member in examined.members for change in member.changes]
    assert len(changes) == 6
    assert all(change.before == change.target != change.after for change in changes)


def test_each_member_shows_outputs_that_it_changes():
    """A needed member shows outputs that it makes wrong; a member without effect shows none."""
    model = SimulatedModel({"a": {"L0H0": 0.9, "L1H0": 0.1}, "b": {}})
    heads = ["L0H0", "L1H0", "L2H2"]
    first, second, inert = model.examiner().examine(heads, report=lambda text: None).members
    assert len(first.changes) == 3
    for member in (first, second):
        assert member.other_members == "intact"
        assert all(change.before == change.target != change.after for change in member.changes)
    assert inert.changes == ()


@pytest.mark.parametrize("heads", [["L0H0"], ["L0H0", "L1H0", "L2H2"]])
def test_each_member_is_measured_alone_on_every_other_task(heads):
    """A member's drop on another task equals that of its single ablation on that task."""
    model = SimulatedModel({"a": {"L0H0": 0.9}, "b": {"L1H0": 0.5}, "c": {"L0H0": 0.4}})
    examined = model.examiner().examine(heads, report=lambda text: None)
    for member in examined.members:
        alone = model.examiner().drops_of([member.head], ["b", "c"])
        for drop in alone:
            measured = member.elsewhere[drop.task]
            assert measured.low <= measured.value <= measured.high
            assert measured.value == pytest.approx(drop.drop.value, abs=0.15)
        assert set(member.elsewhere) == {"b", "c"}
    assert examined.members[0].elsewhere["c"].low > 0.1
    assert examined.members[0].elsewhere["b"].value == 0


def test_tasks_of_the_same_skill_are_no_controls():
    """The losses of a task of the same skill do not count against the set."""
    shared = {"L0H0": 0.9, "L1H0": 0.9}
    model = SimulatedModel({"a": shared, "b": shared, "c": {}, "d": {}})
    assert model.verdict(["L0H0", "L1H0"]).label == "partly specific"
    examined = model.examiner(same_skill=["b"]).examine(["L0H0", "L1H0"], report=print)
    assert examined.verdict.label == "specific"
    assert {drop.task: drop.role for drop in examined.drops}["b"] == "same_skill"


def test_without_other_tasks_nothing_is_called_specific():
    """Without other tasks the verdict is inconclusive."""
    assert SimulatedModel({"a": {"L0H0": 0.9}}).verdict(["L0H0"]).label == "inconclusive"


def test_the_curve_grows_and_becomes_flat():
    """A curve over four heads, of which two matter, is flat from two heads on."""
    model = SimulatedModel({"a": {"L0H0": 0.6, "L1H0": 0.6}, "b": {}, "c": {}})
    examined = model.examiner(curve=10).examine(
        ["L0H0", "L1H0"], order=["L0H0", "L1H0", "L4H1", "L4H2"], report=lambda text: None
    )
    curve = examined.curve
    assert [point.k for point in curve.points] == [0, 1, 2, 3, 4]
    drops = [point.drop.value for point in curve.points]
    assert drops[0] == 0 < drops[1] < drops[2] == drops[3] == drops[4]
    assert curve.flat_at == 2
    assert all(abs(point.others.value) < 0.05 for point in curve.points)
    assert curve.points[1].same_skill is None


def test_every_kind_of_ablation_is_checked():
    """Each kind of ablation is examined; one without effect does not survive."""
    from dataclasses import replace

    model, inert = five_tasks(), SimulatedModel({name: {} for name in five_tasks().heads})
    examiner = replace(model.examiner(), kinds={"zero": model.execute, "mean": inert.execute})
    zero, mean = examiner.examine(TASK_HEADS, report=lambda text: None).ablations
    assert (zero.kind, zero.survives) == ("zero", True)
    assert (mean.kind, mean.survives, mean.drop.value) == ("mean", False, 0.0)


def test_drops_are_those_of_the_responses():
    """Drops, off-target drop and specific drop equal means of the responses."""
    model = five_tasks()
    examined = model.examiner().examine(TASK_HEADS, report=lambda text: None)
    mask = np.zeros((2, 96), dtype=bool)
    mask[1, COMPONENTS.columns(TASK_HEADS)] = True
    from broca.measurement import Plan

    values = model.execute(Plan.crossed(mask, np.arange(80))).responses.reshape(2, 80).mean(1)
    task_drop = examined.drops[0]
    assert (task_drop.before, task_drop.after) == pytest.approx(tuple(values))
    assert task_drop.drop.low <= task_drop.drop.value <= task_drop.drop.high
    mean = np.mean([drop.drop.value for drop in examined.drops[1:]])
    assert examined.off_target.value == pytest.approx(mean)
    assert examined.specific.value == pytest.approx(task_drop.drop.value - mean)


def test_random_sets_are_rarely_called_specific():
    """At most 7 % of 40 random sets are specific; `benchmarks/false_positives.py` takes 200."""
    model = five_tasks(items=40)
    rng = np.random.default_rng(0)
    examiner = model.examiner()
    called = 0
    for _ in range(40):
        heads = [COMPONENTS.names[c] for c in rng.choice(96, 4, replace=False)]
        (task_drop,) = examiner.drops_of(heads, ["adding"])
        if task_drop.p <= 0.05:  # without a significant drop no set is specific
            verdict = examiner.examine(heads, report=lambda text: None).verdict
            called += verdict.label == "specific"
    assert called / 40 <= 0.07


def test_no_outputs_are_looked_at_where_none_are_wanted():
    """With `failure_items=0` the verdict is based on scores alone."""
    examined = five_tasks().examiner(failure_items=0).examine(TASK_HEADS, report=lambda text: None)
    assert (examined.failures, examined.samples) == ((), ())
    assert examined.verdict.label == "specific"


def test_a_set_like_random_ones_is_told_by_the_first_twenty():
    """A set that does not beat the first twenty random sets is compared with no more."""
    examined = five_tasks().examiner().examine(["L5H1", "L5H2"], report=lambda text: None)
    assert {len(control.sets) for control in examined.controls} == {20}
    assert all(control.drop.p > 0.05 for control in examined.controls)
    ahead = five_tasks().examiner(controls=13).examine(TASK_HEADS, report=lambda text: None)
    assert {len(control.sets) for control in ahead.controls} == {25}
