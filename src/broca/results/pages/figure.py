"""A figure: a chart with a name and a caption, shown on a page, in a notebook or in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from markupsafe import Markup

from broca.errors import BadInput, nearest
from broca.results.pages.charts import Chart
from broca.results.pages.drawing import style

Format = Literal["pdf", "svg", "png"]
Width = Literal["column", "page"]

INCHES: dict[Width, float] = {"column": 3.35, "page": 6.9}
"""Widths of figures in two-column papers."""

PIXELS: dict[Width, int] = {"column": 430, "page": 820}
"""Widths of layouts: text of 12 pixels becomes 6.7 or 7.3 points."""


@dataclass(frozen=True)
class Figure:
    """A chart with its name and caption.

    Attributes:
        name: Name in files and anchors, such as `components`.
        caption: Caption of one or two sentences.
        chart: The chart.
    """

    name: str
    caption: str
    chart: Chart

    def svg(self) -> str:
        """Returns the figure as an SVG element with its colours written out."""
        return self.chart.svg(alone=True)

    def markup(self) -> Markup:
        """Returns the figure for a page, whose colours follow the reader's colour scheme."""
        return Markup(self.chart.svg())

    def save(self, path: str | Path, *, width: Width = "page") -> Path:
        """Writes the figure for a paper, with embedded fonts; the suffix is the format.

        Args:
            path: The file, `.pdf`, `.svg` or `.png` (300 dots per inch).
            width: `column` (3.35 inches) or `page` (6.9 inches).

        Raises:
            BadInput: The format or the width is unknown, or the file cannot be written.
        """
        from matplotlib import rc_context

        path = Path(path)
        form = path.suffix.removeprefix(".")
        for name, value, known in (("width", width, PIXELS), ("format", form, get_args(Format))):
            if value not in known:
                raise BadInput(
                    f"`{name}` '{value}' is unknown{nearest(value, known)}: use {', '.join(known)}"
                )
        scale = 72 * INCHES[width] / PIXELS[width]
        date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
        try:
            with rc_context(style(scale)):
                figure = self.chart.paint(PIXELS[width], scale)
                figure.savefig(path, format=form, metadata=date, dpi=300)
        except OSError as error:
            raise BadInput(
                f"'{path}' cannot be written ({error.strerror}): choose another folder"
            ) from error
        return path

    def _repr_html_(self) -> str:
        return self.svg()
