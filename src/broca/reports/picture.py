"""A result as self-contained HTML without a script, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from broca.reports import result_figures
from broca.results.base import Result
from broca.results.localization import Localization
from broca.results.refit import Refit

_LINES = 12
"""Maximum number of lines of a table; `to_frame()` has all."""


def picture(result: Result) -> str:
    """Returns the verdict in words, and the ranking by layer or a table's first lines."""
    first, *others = (escape(line) for line in result.summary())
    if isinstance(result, Localization | Refit):
        body = result_figures.components(result).svg() if result.ranking else ""
    else:
        body = _table(result.records())
    return f"<div><p><b>{first}</b><br>{'<br>'.join(others)}</p>{body}</div>"


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
