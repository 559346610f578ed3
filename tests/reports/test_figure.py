"""A figure: a chart with a name, shown alone or in a notebook."""

from broca.reports.charts import Bars
from broca.reports.colours import LIGHT
from broca.reports.figure import Figure

FIGURE = Figure("counts", "How many.", Bars(("a",), (3.0,), "n"))


def test_a_notebook_shows_it():
    """One SVG element that needs no style."""
    html = FIGURE._repr_html_()
    assert html == FIGURE.svg()
    assert html.startswith("<svg")
    assert "class=" not in html
    assert LIGHT["series1"] in html


def test_it_is_laid_out_for_a_width():
    """The chart's own by default."""
    assert FIGURE.draw().width == FIGURE.chart.draw().width
    assert FIGURE.draw(300).width == 300
