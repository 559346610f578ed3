"""The verification as a section of the report, and as a page of its own."""

from __future__ import annotations

import plotly.graph_objects as go
from markupsafe import Markup

from broca.reports.figures import AFTER, BEFORE, INK, MUTED, TARGET, error_bars, styled
from broca.reports.filling import filled
from broca.results.base import Interval
from broca.results.verification import Controls, Curve, Verification


def render_verification(verification: Verification) -> str:
    """Renders the sections of one verification, without a page around them.

    Text from models and tasks is escaped: it may hold anything.
    """
    figures = {}
    if verification.controls:
        figures["verification-controls"] = controls_figure(verification.controls)
    if verification.curve is not None:
        figures["verification-curve"] = curve_figure(verification.curve)
    return filled("verification", figures, verification=verification)


def render_verification_page(verification: Verification) -> str:
    """Renders a verification without a search as one HTML page that needs nothing from outside."""
    return filled(
        "verification_page",
        verification=verification,
        sections=Markup(render_verification(verification)),
    )


def controls_figure(controls: tuple[Controls, ...]) -> go.Figure:
    """Drops of the random sets, and the real set's on the same items."""
    figure = go.Figure()
    for control in controls:
        figure.add_trace(
            go.Box(
                name=f"matched by {control.kind}",
                y=[100 * random_set.drop for random_set in control.sets],
                text=[" ".join(random_set.heads) for random_set in control.sets],
                boxpoints="all",
                jitter=0.4,
                pointpos=0,
                fillcolor="rgba(0,0,0,0)",
                line={"color": "rgba(0,0,0,0)"},
                marker={"color": BEFORE, "size": 8},
                showlegend=False,
            )
        )
    figure.add_trace(
        go.Scatter(
            name="the real set",
            x=[f"matched by {control.kind}" for control in controls],
            y=[100 * control.drop.value for control in controls],
            mode="markers",
            marker={"color": TARGET, "size": 14, "symbol": "diamond"},
        )
    )
    figure.update_yaxes(title="points lost on the task", gridcolor="#e4e7eb")
    return styled(figure, height=320)


def curve_figure(curve: Curve) -> go.Figure:
    """Points lost with the first k heads ablated, with intervals."""
    figure = go.Figure()
    lines: list[tuple[str, str, list[Interval | None]]] = [
        ("task", TARGET, [point.drop for point in curve.points]),
        ("same skill", AFTER, [point.same_skill for point in curve.points]),
        ("others", MUTED, [point.others for point in curve.points]),
    ]
    for name, colour, values in lines:
        drawn = [(point.k, drop) for point, drop in zip(curve.points, values, strict=True) if drop]
        if not drawn:
            continue
        figure.add_trace(
            go.Scatter(
                name=name,
                x=[k for k, _ in drawn],
                y=[100 * drop.value for _, drop in drawn],
                error_y=error_bars([drop for _, drop in drawn], scale=100, colour=colour),
                line={"color": colour},
            )
        )
    figure.add_vline(x=curve.flat_at, line={"color": INK, "dash": "dot", "width": 1})
    figure.update_xaxes(title="heads ablated", dtick=1)
    figure.update_yaxes(title="points lost", gridcolor="#e4e7eb")
    return styled(figure, height=340)
