"""A figure: a chart with a name and a caption, shown on a page, in a notebook or in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from broca.errors import BadInput, nearest
from broca.results.pages import paper
from broca.results.pages.charts import Chart
from broca.results.pages.drawing import Drawing, svg


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

    def draw(self, width: float | None = None) -> Drawing:
        """Lays the chart out for a width in CSS pixels, by default that of its kind."""
        return self.chart.draw() if width is None else self.chart.draw(width)

    def svg(self) -> str:
        """Returns the figure as an SVG element with its colours written out."""
        return svg(self.draw(), alone=True)

    def markup(self) -> Markup:
        """Returns the figure for a page, whose colours follow the reader's colour scheme."""
        return Markup(svg(self.draw()))

    def save(self, path: str | Path, *, width: paper.Width = "page") -> Path:
        """Writes the figure for a paper, with embedded fonts; the suffix is the format.

        Args:
            path: The file, `.pdf`, `.svg` or `.png`.
            width: `column` (3.35 inches) or `page` (6.9 inches).

        Raises:
            BadInput: The format or the width is unknown, or the file cannot be written.
        """
        path = Path(path)
        if width not in paper.PIXELS:
            raise BadInput(
                f"`width` '{width}' is unknown{nearest(width, paper.PIXELS)}: use "
                f"{', '.join(paper.PIXELS)}"
            )
        form: paper.Format = path.suffix.removeprefix(".")  # type: ignore[assignment]
        paper.save(self.draw(paper.PIXELS[width]), path, format=form, width=width)
        return path

    def _repr_html_(self) -> str:
        return self.svg()
