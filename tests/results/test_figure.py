"""A figure is a named chart that is shown alone or in a notebook."""

from broca.results.pages.charts import Bars
from broca.results.pages.colours import LIGHT
from broca.results.pages.figure import Figure

FIGURE = Figure("counts", "How many.", Bars(("a",), (3.0,), "n"))


def test_a_notebook_shows_the_figure():
    """A notebook shows one SVG element with colours and without classes."""
    html = FIGURE._repr_html_()
    assert html == FIGURE.svg()
    assert html.startswith("<svg")
    assert "class=" not in html
    assert LIGHT["series1"] in html


def test_a_figure_is_laid_out_for_a_width():
    """A figure has the width that is asked for and by default the chart's width."""
    assert FIGURE.draw().width == FIGURE.chart.draw().width
    assert FIGURE.draw(300).width == 300
