"""The page of a stress test shows its verdict, the set in the model and every measure."""

from reports.test_escaping import make_stress

from broca.reports import render_stress_page
from broca.reports.stress import necessity_table, shift_table


def test_the_page_shows_every_measure():
    """The page shows transfer, necessity, probe and reversal."""
    html = " ".join(render_stress_page(make_stress()).split())
    assert html.index("<h1>") < html.index('data-component="L0H1"') < html.index("<table>")
    for text in ("same template", "accuracy 0.90", "chance 0.50", "the last token", "1 of 3"):
        assert text in html


def test_controls_that_were_not_measured_are_blank():
    """A family that only one ablation has measured is not shown as zero for the others."""
    stress = make_stress()
    table = necessity_table(stress)
    assert [column.name for column, _ in table.headings][2] == "sums"
    assert shift_table(stress).rows[1][2] is None
