"""The summary, table and curves of a comparison."""

from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.comparison import (
    Carry,
    ComparedModel,
    ComparedSelection,
    Comparison,
    SelectionScore,
    TaskDifferences,
    TaskEffects,
)

NAMES = ("L0H0", "L0H1", "L1H0", "L1H1")


def make_comparison(models=("base", "tuned")):
    """Returns a comparison of two by two components, one of which changed in all later models."""
    effects, differences = [], []
    for number, label in enumerate(models):
        values = (-0.4 + 0.1 * number, 0.0, 0.05, -0.1)
        ends = tuple(value - 0.02 for value in values), tuple(value + 0.02 for value in values)
        effects.append(TaskEffects(label, "adding", values, *ends))
        if number:
            changes = (0.1 * number, 0.0, 0.0, 0.0)
            differences.append(
                TaskDifferences(
                    label, "adding", changes, tuple(c - 0.03 for c in changes),
                    tuple(c + 0.03 for c in changes), (0.001, 0.9, 0.8, 0.7),
                    (0.004, 0.9, 0.9, 0.9), ("L0H0",),
                )
            )  # fmt: skip
    drop = Interval(0.3, 0.2, 0.4)
    return Comparison(
        models=tuple(
            ComparedModel(label, ModelInfo(label, "abc", layers=2, heads=2)) for label in models
        ),
        tasks=("adding",),
        components=NAMES,
        ablation=AblationInfo("zero", 0.0),
        response="probability",
        seed=3,
        level=0.05,
        rows=1000,
        items={"adding": 40},
        report_items={"adding": 80},
        mask_size=1,
        effects=tuple(effects),
        differences=tuple(differences),
        selections=(ComparedSelection("base, adding", models[0], "adding", ("L0H0", "L1H1")),),
        scores=(
            SelectionScore(models[0], "adding", None, 0.9),
            SelectionScore(models[0], "adding", "base, adding", 0.6, drop),
        ),
        carries=(Carry("base, adding", models[1], "adding", drop, None, None, 0.001, "yes"),),
        notes=("a note",),
    )


def test_the_summary_says_what_changed_and_what_is_carried():
    """The summary is in words, with the drop and the number of rows."""
    assert make_comparison().summary() == (
        "1 of 4 components changed on adding from base to tuned: L0H0",
        "base, adding carry adding in tuned (drop 30.0 points)",
        "2 models, 1 task, 1,000 rows for each, seed 3",
    )


def test_a_line_for_each_component_and_model():
    """The first model has effects and no differences."""
    frame = make_comparison().to_frame()
    assert len(frame) == 8
    assert frame.query("model == 'base'")["difference"].isna().all()
    changed = frame.query("changed == True")
    assert changed[["model", "component", "difference"]].values.tolist() == [["tuned", "L0H0", 0.1]]


def test_curves_follow_the_selected_components_over_the_models():
    """Curves have intervals and follow the order of the models."""
    curves = make_comparison(("step1", "step2", "step3")).curves()
    assert set(curves) == {("adding", "L0H0"), ("adding", "L1H1")}
    values = [round(point.value, 6) for point in curves["adding", "L0H0"]]
    assert values == [-0.4, -0.3, -0.2]
    assert all(point.low < point.value < point.high for point in curves["adding", "L1H1"])


def test_effects_are_found_by_model_and_task():
    """Effects that were not measured are None."""
    comparison = make_comparison()
    assert comparison.effects_of("tuned", "adding").effects[0] == -0.30000000000000004
    assert comparison.effects_of("tuned", "sorting") is None
