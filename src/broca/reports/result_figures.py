"""The figures of results."""

from __future__ import annotations

from broca.reports.charts import (
    IntervalChart,
    Line,
    LineChart,
    Point,
    Series,
)
from broca.reports.figure import Figure
from broca.reports.grid import ComponentGrid, grid_of_set, group_of
from broca.results.base import Interval, ModelInfo
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.refit import Refit
from broca.results.stress_test import StressTest
from broca.results.verification import Controls, Curve, Verification


def components(result: Localization | Refit) -> Figure:
    """Draws the model's components with their effects as colours; selected ones are framed."""
    model = result.model if isinstance(result, Localization) else None
    universal = result.universal if isinstance(result, Localization) else ()
    grid = ComponentGrid(
        {line.name: line.effect for line in result.ranking},
        f"estimated effect of ablating it on {result.response} in {result.task}",
        layers=model.layers if model else None,
        group=group_of(model) if model else None,
        selected=result.selected,
        universal=universal,
        text=f"{len(result.ranking)} components by layer; selected: "
        f"{', '.join(result.selected) or 'none'}",
    )
    caption = "Each cell is a component of the model: layers from top to bottom."
    return Figure("components", caption, grid)


def members(verification: Verification) -> Figure:
    """Draws the verified set within the model, with the single drops of members as colours."""
    alone = {line.head: -line.alone.value for line in verification.members}
    grid = grid_of_set(
        verification.model, verification.heads, effects=alone,
        unit=f"change of the score of {verification.task} when it is ablated alone",
    )  # fmt: skip
    return Figure("components", "The verified set within the model.", grid)


def tested_set(stress: StressTest) -> Figure:
    """The tested set within the model."""
    grid = grid_of_set(stress.model, stress.heads, unit="effects of single heads")
    return Figure("components", "The tested set within the model.", grid)


def before_after(verification: Verification) -> Figure:
    """Draws the scores of every task, intact and, for a nonempty set, with the set ablated."""
    names = tuple(line.task for line in verification.drops)
    series = [
        Series(
            "intact", "intact",
            tuple((row, Point(verification.baseline[name])) for row, name in enumerate(names)),
            shape="ring",
            radius=7.0,
        )
    ]  # fmt: skip
    if verification.heads:
        after = tuple((row, Point(verification.after[name])) for row, name in enumerate(names))
        series.append(Series("with the set ablated", "harm", after))
    chart = IntervalChart(
        names, tuple(series), "score", joined=True, bold=(verification.task,),
        text=f"Scores of {len(names)} tasks on report items",
    )  # fmt: skip
    return Figure("scores", "Scores on report items, which the search did not use.", chart)


def controls(kinds: tuple[Controls, ...]) -> Figure:
    """Draws the drops of the random sets, and of the real set on the same items."""
    random_sets = tuple(
        (
            row,
            Point(
                100 * drawn.drop, title=f"{' '.join(drawn.heads)}: {100 * drawn.drop:.1f} points"
            ),
        )
        for row, control in enumerate(kinds)
        for drawn in control.sets
    )
    real = tuple((row, Point(100 * control.drop.value)) for row, control in enumerate(kinds))
    chart = IntervalChart(
        tuple(f"matched by {control.kind}" for control in kinds),
        (
            Series("random sets of the same size", "intact", random_sets, "ring", 4.0),
            Series("the real set", "harm", real, "diamond", 6.0),
        ),
        "points lost on the task",
    )
    return Figure("controls", "The real set and random sets, on the same items.", chart)


def curve(swept: Curve) -> Figure:
    """Draws the drops with the first k components ablated, with intervals."""
    kinds: tuple[tuple[str, str, list[Interval | None]], ...] = (
        ("the task", "harm", [point.drop for point in swept.points]),
        ("its skill", "series1", [point.same_skill for point in swept.points]),
        ("the others", "intact", [point.others for point in swept.points]),
    )
    lines = []
    for number, (name, role, values) in enumerate(kinds):
        drops = [(point.k, drop) for point, drop in zip(swept.points, values, strict=True) if drop]
        if drops:
            points = tuple(
                Point.of(drop, scale=100) if k else Point(0.0) for k, drop in drops
            )  # no component is ablated at k = 0
            lines.append(Line(name, tuple(float(k) for k, _ in drops), points, role, number))
    chart = LineChart(
        tuple(lines), "components ablated", "points lost", mark=float(swept.flat_at)
    )  # fmt: skip
    caption = (
        f"Beyond k = {swept.flat_at}, no further component significantly costs more than 5 points."
    )
    return Figure("curve", caption, chart)


def shifts(stress: StressTest) -> Figure:
    """Draws the transfer of each write of a stress test in nats, with intervals."""
    real = [(0, Point.of(stress.shifts[0].transfer))] if stress.shifts else []
    others = [
        (row, Point.of(line.transfer)) for row, line in enumerate(stress.shifts[1:], start=1)
    ]  # fmt: skip
    chart = IntervalChart(
        tuple(line.source for line in stress.shifts),
        (
            Series("the real write", "harm", tuple(real), "diamond", 6.0),
            Series("its controls", "intact", tuple(others)),
        ),
        "transfer, nats",
        joined=True,
    )
    return Figure("transfer", "The effect of writing other outputs into the set.", chart)


def necessity(stress: StressTest) -> Figure:
    """Draws the drop of the margin under each ablation, on the family and its controls."""
    kinds = tuple(line.ablation for line in stress.necessity)
    drops = tuple((row, Point.of(line.drop)) for row, line in enumerate(stress.necessity))
    families = dict.fromkeys(name for line in stress.necessity for name in line.controls)
    series = [Series(stress.family, "harm", drops, "diamond", 6.0)]
    for name in families:
        points = tuple(
            (row, Point(line.controls[name], title=f"{name}: {line.controls[name]:.2f}"))
            for row, line in enumerate(stress.necessity)
            if name in line.controls
        )
        series.append(Series("control families" if name == next(iter(families)) else "",
                             "intact", points))  # fmt: skip
    chart = IntervalChart(kinds, tuple(series), "drop of the margin, nats", joined=True)
    return Figure("necessity", "The drop of the margin when the set is ablated.", chart)


def located(neuron_set: NeuronSet) -> Figure:
    """Draws the selected neurons within their layers, with the scores as colours."""
    grid = ComponentGrid(
        {neuron.name: -neuron.score for neuron in neuron_set.selected},
        f"score of {neuron_set.method}, shown as a loss",
        layers=neuron_set.model.layers,
        text=f"{len(neuron_set.selected)} neurons by layer",
        neurons=_neurons_of_a_layer(neuron_set.model),
    )
    caption = "Each stroke is a selected neuron at its position within its layer."
    return Figure("components", caption, grid)


def _neurons_of_a_layer(model: ModelInfo) -> int | None:
    """Returns the number of neurons of a layer; None if the result does not state it."""
    if not model.neurons or not model.layers:
        return None
    return model.neurons // model.layers
