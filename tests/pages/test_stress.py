"""The page of a stress test shows its verdict, the set in the model and every measure."""

from results.samples import make_stress

from broca.results.pages.stress import necessity_table, shift_table


def test_the_page_shows_every_measure():
    """The page shows transfer, necessity, probe and reversal."""
    html = " ".join(make_stress().page().split())
    assert html.index("<h1>") < html.index('data-component="L0H1"') < html.index("<table>")
    for text in ("same template", "accuracy 0.90", "chance 0.50", "the last token", "1 of 3"):
        assert text in html


def test_controls_that_were_not_measured_are_blank():
    """A family that only one ablation has measured is not shown as zero for the others."""
    stress = make_stress()
    table = necessity_table(stress)
    assert [column.name for column, _ in table.headings][2] == "sums"
    assert shift_table(stress).rows[1][2] is None
