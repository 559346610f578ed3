"""Figures as files for papers: PDF, SVG and PNG by matplotlib, with embedded fonts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from broca.errors import BadInput, MissingExtra, nearest
from broca.results.pages import drawing
from broca.results.pages.colours import LIGHT, step_colour

Format = Literal["pdf", "svg", "png"]
Width = Literal["column", "page"]

INCHES: dict[Width, float] = {"column": 3.35, "page": 6.9}
"""Widths of figures in two-column papers."""

PIXELS: dict[Width, int] = {"column": 430, "page": 820}
"""Widths of layouts: text of 12 pixels becomes 6.7 or 7.3 points."""

_DOTS = 300
_SETTINGS: Any = {
    "pdf.fonttype": 42,  # TrueType, which publishers accept
    "svg.fonttype": "path",  # text as outlines: the file needs no font
    "svg.hashsalt": "broca",  # the same figure is the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "hatch.linewidth": 0.4,
}


def save(picture: drawing.Drawing, path: Path, *, format: Format, width: Width) -> None:
    """Writes a drawing as a file at the width of a paper's column or page.

    Args:
        picture: The drawing, laid out for `PIXELS[width]`.
        path: The file; it is replaced.
        format: `pdf`, `svg` or `png` (300 dots per inch).
        width: `column` or `page`.

    Raises:
        BadInput: The format is unknown, or the file cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    if format not in get_args(Format):
        formats = get_args(Format)
        raise BadInput(
            f"`format` '{format}' is unknown{nearest(format, formats)}: use {', '.join(formats)}"
        )
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(
            "figures for papers need matplotlib: pip install 'broca[figures]'"
        ) from error

    # the layout is in pixels, matplotlib's in points
    scale = 72 * INCHES[width] / picture.width
    with rc_context(_SETTINGS):
        inches = INCHES[width], INCHES[width] * picture.height / picture.width
        figure = Figure(figsize=inches, dpi=_DOTS)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, picture.width)
        axes.set_ylim(picture.height, 0)
        axes.axis("off")
        _draw(axes, picture.marks, 0.0, 0.0, scale)
        date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(format)
        try:
            figure.savefig(path, format=format, metadata=date)
        except OSError as error:
            raise BadInput(
                f"'{path}' cannot be written ({error.strerror}): choose another folder"
            ) from error


def _draw(axes: Any, marks: Sequence[drawing.Mark], x: float, y: float, scale: float) -> None:
    """Draws marks, moved by `(x, y)`; `scale` is points per pixel."""
    from matplotlib.patches import Circle, Polygon, Rectangle

    for mark in marks:
        if isinstance(mark, drawing.MarkGroup):
            _draw(axes, mark.marks, x + mark.x, y + mark.y, scale)
        elif isinstance(mark, drawing.Cells):
            _draw_cells(axes, mark, x, y + mark.y)
        elif isinstance(mark, drawing.Rect):
            colour = LIGHT[mark.role]
            look: dict[str, Any] = (
                {"fill": False, "edgecolor": colour, "linewidth": mark.outline * scale}
                if mark.outline
                else {"facecolor": colour, "linewidth": 0}
            )
            place = (x + mark.x, y + mark.y)
            axes.add_patch(Rectangle(place, mark.width, mark.height, **look))
        elif isinstance(mark, drawing.Segment):
            axes.plot(
                [x + mark.x1, x + mark.x2], [y + mark.y1, y + mark.y2], color=LIGHT[mark.role],
                linewidth=mark.width * scale, dashes=(4, 3) if mark.dashed else (None, None),
            )  # fmt: skip
        elif isinstance(mark, drawing.Polyline):
            dashes = [float(part) for part in mark.dash.split()] or (None, None)
            axes.plot(
                [x + a for a, _ in mark.points], [y + b for _, b in mark.points],
                color=LIGHT[mark.role], linewidth=mark.width * scale, dashes=dashes,
            )  # fmt: skip
        elif isinstance(mark, drawing.Symbol):
            place = (x + mark.x, y + mark.y)
            colour = LIGHT[mark.role]
            if mark.shape == "circle":
                axes.add_patch(Circle(place, mark.radius, facecolor=colour, linewidth=0))
            elif mark.shape == "ring":
                line = 2 * scale
                axes.add_patch(
                    Circle(place, mark.radius, fill=False, edgecolor=colour, linewidth=line)
                )
            elif mark.shape == "cross":
                for slope in (1, -1):
                    axes.plot(
                        [place[0] - mark.radius, place[0] + mark.radius],
                        [place[1] - slope * mark.radius, place[1] + slope * mark.radius],
                        color=colour, linewidth=2 * scale,
                    )  # fmt: skip
            else:
                corners = [
                    (place[0] + a, place[1] + b)
                    for a, b in drawing.polygon(mark.shape, mark.radius)
                ]
                axes.add_patch(Polygon(corners, facecolor=colour, linewidth=0))
        else:
            _draw_label(axes, mark, x, y, scale)


def _draw_cells(axes: Any, row: drawing.Cells, x: float, y: float) -> None:
    from matplotlib.patches import Rectangle

    for cell in row.cells:
        look: dict[str, Any] = (
            {"fill": False, "hatch": "//////", "edgecolor": LIGHT["muted"], "linewidth": 0}
            if cell.step is None
            else {"facecolor": step_colour(cell.step), "linewidth": 0}
        )
        axes.add_patch(Rectangle((x + cell.x, y), row.width, row.height, **look))


def _draw_label(axes: Any, mark: drawing.Label, x: float, y: float, scale: float) -> None:
    anchor = {"start": "left", "middle": "center", "end": "right"}[mark.anchor]
    axes.text(
        x + mark.x, y + mark.y, mark.text.replace("$", r"\$"), fontsize=mark.size * scale,
        color=LIGHT[mark.role], ha=anchor, va="baseline", rotation=90 if mark.turned else 0,
        rotation_mode="anchor", fontweight="semibold" if mark.bold else "normal",
    )  # fmt: skip
