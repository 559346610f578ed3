"""A result as a small piece of HTML, as a notebook shows it: no script, nothing from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from broca.results.base import Result
from broca.results.localization import Localization, RankedComponent
from broca.results.refit import Refit

_LINES = 12
"""Lines of a table; `to_frame()` has all."""

_RED, _BLUE = (180, 35, 24), (43, 108, 176)


def picture(result: Result) -> str:
    """The verdict in words, and the layers x heads of a ranking or the first lines of the table."""
    first, *others = (escape(line) for line in result.summary())
    if isinstance(result, Localization | Refit):
        body = _grid(result.ranking, result.selected)
    else:
        body = _table(result.records())
    return f"<div><p><b>{first}</b><br>{'<br>'.join(others)}</p>{body}</div>"


def _grid(ranking: Sequence[RankedComponent], selected: Sequence[str]) -> str:
    """A cell for each head, red where its loss harms the task; selected ones are framed."""
    heads = {(line.layer, line.head): line for line in ranking if line.head is not None}
    if not heads:
        return ""
    span = max(abs(line.effect) for line in heads.values()) or 1.0
    layers = sorted({layer for layer, _ in heads})
    numbers = sorted({head for _, head in heads})
    rows = "".join(
        f"<tr><th>{layer}</th>"
        + "".join(_cell(heads.get((layer, head)), span, selected) for head in numbers)
        + "</tr>"
        for layer in layers
    )
    return (
        '<table style="border-collapse:separate;border-spacing:1px"><caption>layer (rows) and '
        f"head; red: the task gets worse without it</caption>{rows}</table>"
    )


def _cell(line: RankedComponent | None, span: float, selected: Sequence[str]) -> str:
    if line is None:
        return "<td></td>"
    strength = min(1.0, abs(line.effect) / span)
    colour = ",".join(
        str(round(255 + strength * (part - 255))) for part in (_RED if line.effect < 0 else _BLUE)
    )
    frame = "outline:2px solid currentColor;" if line.name in selected else ""
    return (
        f'<td title="{escape(line.name)} {line.effect:+.4f}" '
        f'style="width:12px;height:12px;padding:0;background:rgb({colour});{frame}"></td>'
    )


def _table(records: Sequence[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for record in records for name in record))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_text(record.get(name))}</td>" for name in columns) + "</tr>"
        for record in records[:_LINES]
    )
    more = len(records) - _LINES
    note = f"<p>and {more:,} more: <code>to_frame()</code> has all</p>" if more > 0 else ""
    return f"<table><tr>{head}</tr>{rows}</table>{note}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
