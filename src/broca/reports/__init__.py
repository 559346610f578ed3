"""Results as self-contained pages, figures and pictures."""

from broca.reports.atlas import render_atlas_page
from broca.reports.charts import (
    Chart,
    IntervalChart,
    Line,
    LineChart,
    Matrix,
    Panels,
    Point,
    Series,
)
from broca.reports.colours import SERIES
from broca.reports.drawing import SHAPES
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.page import render_html
from broca.reports.picture import picture
from broca.reports.stress import render_stress_page
from broca.reports.tables import Column, Table
from broca.reports.verification import render_verification_page
from broca.reports.writing import plot, plots, render, write, write_page

__all__ = [
    "SERIES",
    "SHAPES",
    "Chart",
    "Column",
    "Figure",
    "IntervalChart",
    "Line",
    "LineChart",
    "Matrix",
    "Panels",
    "Point",
    "Series",
    "Table",
    "filled",
    "picture",
    "plot",
    "plots",
    "render",
    "render_atlas_page",
    "render_html",
    "render_stress_page",
    "render_verification_page",
    "write",
    "write_page",
]
