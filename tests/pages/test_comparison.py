"""The page of a comparison has a map of differences, curves and tables."""

from dataclasses import replace

from results.samples import make_comparison

from broca.results.pages.comparison import comparison_figures, difference_table


def test_the_page_says_what_changed():
    """The page has a headline, the needed components, notes and the models' weights."""
    page = make_comparison().page()
    assert "1 component changed from base to tuned" in page
    for part in ("needed more", "needed less", "L0H0, L1H1", "a note", "<code>abc</code>"):
        assert part in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "Selected components over the models" not in page


def test_many_models_have_curves():
    """The curves have a line for each selected component and a point for each model."""
    comparison = make_comparison(("step1", "step2", "step3"))
    assert "Selected components over the models" in comparison.page()
    names = [figure.name for figure in comparison_figures(comparison)]
    assert names == ["components", "components-1", "curves"]
    lines = comparison_figures(comparison)[-1].chart.lines
    assert [line.name for line in lines] == ["L0H0", "L1H1"]
    assert [len(line.points) for line in lines] == [3, 3]


def test_names_of_models_are_escaped():
    """A script tag in a model's name is escaped."""
    page = make_comparison(("<script>alert(1)</script>", "b")).page()
    assert "<script>alert(1)" not in page


def test_the_surest_differences_come_first_and_changed_ones_stand_out():
    """Rows are sorted by p-value, and changed components are emphasized."""
    table = difference_table(make_comparison())
    assert [row[0] for row in table.rows] == ["L0H0", "L1H1", "L1H0", "L0H1"]
    assert table.strong == {0}
    assert [column.name for column, _ in table.headings][:2] == ["component", "difference"]
    three = difference_table(make_comparison(("step1", "step2", "step3")))
    assert [column.name for column, _ in three.headings][:3] == ["component", "model", "task"]


def test_where_nothing_changed_a_line_says_so():
    """If no difference is significant, a line with the lowest q-value precedes the folded table."""
    comparison = make_comparison()
    assert "No difference is sure" not in comparison.page()
    same = replace(
        comparison,
        differences=tuple(
            replace(line, q=(1.0,) * len(line.q), changed=()) for line in comparison.differences
        ),
    )
    html = same.page()
    assert "No difference is sure: the least q-value is 1." in html
    assert html.index("<details>") < html.index('data-table="changes"')
