"""`methods.html`: quality against rows, one line a method, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from broca.reports.figures import styled
from broca.results.files import write_beside
from broca.studies.methods.summary import MethodSummary
from broca.studies.methods.text_tables import columns, texts_of

NAME = "methods.html"

_STYLE = """
body { font-family: system-ui, sans-serif; color: #1f2933; max-width: 70rem; margin: 2rem auto; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #e4e7eb; text-align: right; }
th:first-child, td:first-child { text-align: left; }
"""


def quality_figure(lines: Sequence[MethodSummary]) -> go.Figure:
    """Mean specific drop against the mean rows of a search, log axis, with intervals."""
    figure = go.Figure()
    for method in dict.fromkeys(line.method for line in lines):
        shown = sorted(
            (line for line in lines if line.method == method and line.cells and line.rows > 0),
            key=lambda line: line.rows,
        )
        figure.add_trace(
            go.Scatter(
                name=method,
                x=[line.rows for line in shown],
                y=[line.specific for line in shown],
                mode="lines+markers",
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [line.high - line.specific for line in shown],
                    "arrayminus": [line.specific - line.low for line in shown],
                    "thickness": 1,
                },
            )
        )
    figure.update_xaxes(type="log", title="rows of a search, all measured tasks together")
    figure.update_yaxes(title="mean specific drop", gridcolor="#e4e7eb")
    return styled(figure, height=520)


def save_page(lines: Sequence[MethodSummary], folder: Path) -> Path:
    """Writes the page; it needs nothing from outside.

    Raises:
        BadInput: The folder cannot be written.
    """
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>broca bench methods</title><style>{_STYLE}</style></head><body>"
    ]
    script: bool | str = True
    for model in dict.fromkeys(line.model for line in lines):
        shown = [line for line in lines if line.model == model]
        parts.append(f"<h1>Methods on {escape(model)}</h1>")
        parts.append(
            quality_figure(shown).to_html(
                full_html=False, include_plotlyjs=script, config={"displayModeBar": False}
            )
        )
        script = False
        parts.append(_table(columns(shown), [texts_of(line, shown) for line in shown]))
    parts.append("</body></html>\n")
    path = folder / NAME
    write_beside(path, "\n".join(parts))
    return path


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, words: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(word)}</{tag}>" for word in words) + "</tr>"

    return f"<table>{line('th', header)}{''.join(line('td', row) for row in rows)}</table>"
