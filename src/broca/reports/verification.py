"""The verification as a section of the report, and as a page of its own."""

from __future__ import annotations

from importlib.resources import files

import plotly.graph_objects as go
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from broca.reports.figures import AFTER, BEFORE, INK, MUTED, TARGET, error_bars, styled
from broca.results.base import Interval
from broca.results.verification import Controls, Curve, Verification


def render_verification(verification: Verification) -> str:
    """Renders the sections of one verification, without a page around them.

    Text from models and tasks is escaped: it may hold anything.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["points"] = lambda value: f"{100 * value:.1f}"
    environment.filters["interval"] = _interval
    environment.filters["p"] = lambda value: "–" if value is None else f"{value:.2g}"
    folder = files("broca.reports")
    text = (folder / "verification.html.j2").read_text(encoding="utf-8")
    figures = {}
    if verification.controls:
        figures["controls"] = controls_figure(verification.controls)
    if verification.curve is not None:
        figures["curve"] = curve_figure(verification.curve)
    options = {"responsive": True, "displayModeBar": False}
    return environment.from_string(text).render(
        verification=verification,
        figures={
            name: Markup(
                figure.to_html(
                    full_html=False,
                    include_plotlyjs=False,
                    div_id=f"verification-{name}",
                    config=options,
                )
            )
            for name, figure in figures.items()
        },
    )


def render_verification_page(verification: Verification) -> str:
    """Renders a verification without a search as one HTML page that needs nothing from outside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    folder = files("broca.reports")
    return environment.from_string(_PAGE).render(
        verification=verification,
        style=Markup((folder / "page.css").read_text(encoding="utf-8")),
        plotly=Markup(get_plotlyjs()),
        sections=Markup(render_verification(verification)),
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>broca: {{ verification.heads | join("+") }} and {{ verification.task }}</title>
<style>{{ style }}</style>
<script>{{ plotly }}</script>
</head>
<body>
<main>
<header>
  <h1>{{ verification.heads | join(", ") }} in {{ verification.model.name }}:
    {{ verification.verdict.label if verification.verdict else "not verified" }} for
    {{ verification.task }}</h1>
  <p>{{ verification.ablation.kind }} ablation, gate {{ verification.ablation.scale }},
    seed {{ verification.seed }}, weights
    <code>{{ verification.model.fingerprint }}</code></p>
</header>
{{ sections }}
</main>
</body>
</html>
"""


def controls_figure(controls: tuple[Controls, ...]) -> go.Figure:
    """Drops of the random sets, and the real set's on the same items."""
    figure = go.Figure()
    for one in controls:
        figure.add_trace(
            go.Box(
                name=f"matched by {one.kind}",
                y=[100 * each.drop for each in one.sets],
                text=[" ".join(each.heads) for each in one.sets],
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
            x=[f"matched by {one.kind}" for one in controls],
            y=[100 * one.drop.value for one in controls],
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
        ("task", TARGET, [one.drop for one in curve.points]),
        ("same skill", AFTER, [one.same_skill for one in curve.points]),
        ("others", MUTED, [one.others for one in curve.points]),
    ]
    for name, colour, values in lines:
        drawn = [(point.k, one) for point, one in zip(curve.points, values, strict=True) if one]
        if not drawn:
            continue
        figure.add_trace(
            go.Scatter(
                name=name,
                x=[k for k, _ in drawn],
                y=[100 * one.value for _, one in drawn],
                error_y=error_bars([one for _, one in drawn], scale=100, colour=colour),
                line={"color": colour},
            )
        )
    figure.add_vline(x=curve.flat_at, line={"color": INK, "dash": "dot", "width": 1})
    figure.update_xaxes(title="heads ablated", dtick=1)
    figure.update_yaxes(title="points lost", gridcolor="#e4e7eb")
    return styled(figure, height=340)


def _interval(one: Interval | None) -> str:
    if one is None:
        return "–"
    return f"{100 * one.value:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]"
