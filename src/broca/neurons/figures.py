"""The overlap of data sets' neurons as a page with one figure."""

from __future__ import annotations

from html import escape

from broca.neurons.overlapping import Overlaps


def overlap_page(overlaps: Overlaps, *, title: str, measure: str = "of_larger") -> str:
    """A self-contained HTML page: the matrix of overlaps between data sets.

    On the diagonal are the two halves of one data set, elsewhere halves of two.
    """
    import plotly.graph_objects as go
    from plotly.offline import get_plotlyjs

    names = list(overlaps.names)
    values = overlaps.matrix(measure)
    shown = [[None if value != value else value for value in row] for row in values]
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            xgap=2,
            ygap=2,
            colorscale=[[0, "#f5f7fa"], [1, "#b42318"]],
            text=[["" if value != value else f"{value:.2f}" for value in row] for row in values],
            texttemplate="%{text}",
            hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
            colorbar={"title": {"text": measure.replace("_", " ")}, "thickness": 12},
        )
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(
        height=200 + 38 * len(names),
        width=260 + 62 * len(names),
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#1f2933"},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        margin={"l": 120, "r": 20, "t": 20, "b": 100},
    )
    body = figure.to_html(full_html=False, include_plotlyjs=False, div_id="overlap")
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<body style='font-family:system-ui,sans-serif'><h1>{escape(title)}</h1>"
        "<p>Share of the larger set of located neurons that two sets have in common. On the "
        "diagonal: two halves of one data set; elsewhere halves of two, mean of four pairs.</p>"
        f"<script>{get_plotlyjs()}</script>{body}</body></html>\n"
    )
