"""`methods.html`: figures of quality against rows for each model, and the table."""

import pytest

from broca.studies.methods import summarize
from broca.studies.methods.comparison_page import NAME, headline, quality_figure, save_page


@pytest.fixture
def lines(make_cell):
    """Summaries of two methods at two budgets, and of one that refused."""
    return summarize(
        [
            make_cell(
                method=method, budget=budget, selected=("A",), drop=drop, off_target=0.1, rows=rows
            )
            for method in ("greedy", "coar")
            for budget, drop, rows in ((900, 0.8, 900), (300, 0.4, 300))
        ]
        + [make_cell(method="thompson", refused="too few")]
    )


def test_a_line_for_each_method_in_points_over_rows(lines):
    """Each method has a line sorted by rows, in points; a method that refused has no point."""
    drawn = {line.name: line for line in quality_figure(lines).chart.lines}
    assert list(drawn)[:2] == ["greedy", "coar"]
    assert list(drawn["greedy"].x) == [300, 900]
    assert [point.value for point in drawn["greedy"].points] == pytest.approx([30.0, 70.0])
    assert not drawn["thompson"].x


def test_the_page_stands_alone_and_shows_every_model(lines, tmp_path):
    """The page shows the table and both models, escapes names and loads nothing from outside."""
    from dataclasses import replace

    path = save_page([*lines, *(replace(line, model="<other>") for line in lines)], tmp_path)
    page = path.read_text()
    assert path.name == NAME
    assert "greedy" in page
    assert "refused" in page
    assert "&lt;other&gt;" in page
    assert "<other>" not in page
    assert 'src="http' not in page


def test_a_method_is_ahead_only_where_its_interval_is(lines):
    """A method leads only where its interval lies above the other methods' intervals."""
    from dataclasses import replace

    first, *others = (line for line in lines if line.cells)
    apart = [replace(line, specific=0.2, low=0.1, high=0.3) for line in others]
    sure = replace(first, specific=0.5, low=0.4, high=0.6)
    assert headline("m", [sure, *apart]) == f"{first.method} finds the most specific sets on m"
    unsure = replace(first, specific=0.5, low=0.25, high=0.6)
    assert headline("m", [unsure, *apart]) == "No method is significantly ahead on m"
    assert headline("m", [line for line in lines if not line.cells]) == "Every method refused m"
