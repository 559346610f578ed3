"""Results as self-contained pages, tables and figures."""

from broca.results.pages.charts import (
    SHAPES,
    Chart,
    IntervalChart,
    Line,
    LineChart,
    Matrix,
    Panels,
    Point,
    Series,
)
from broca.results.pages.colours import SERIES
from broca.results.pages.figure import Figure
from broca.results.pages.tables import Column, Table
from broca.results.pages.template import filled

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
]
