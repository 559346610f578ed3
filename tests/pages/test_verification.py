"""The sections of a verification start with the verdict and show outputs side by side."""

import re
from dataclasses import replace

import pytest
from simulated import toy_verification

from broca.results.pages.verification import (
    failure_table,
    render_verification_page,
    sample_table,
    task_table,
)
from broca.results.verification import Sample


@pytest.fixture(scope="module")
def verification():
    """A verification of a simulated model."""
    return toy_verification()


def test_the_verdict_stands_first_with_its_numbers(verification):
    """The verdict is in words and comes before any table."""
    html = render_verification_page(verification)
    label = html.index(f">{verification.verdict.label}</span>")
    assert html.index("<h1>") < label < html.index("<svg") < html.index("<table>")
    assert verification.verdict.text.split("(")[0] in html
    assert re.search(r"loses [\d.]+ points \[[\d.-]+, [\d.-]+\] \(p ", verification.verdict.text)


def test_ten_outputs_stand_side_by_side(verification):
    """A line has prompt, answer and both outputs; an empty output is shown as `(nothing)`."""
    samples = tuple(
        Sample("adding", f"prompt {n}", "x", f"before {n}", " \n" if n else "y") for n in range(10)
    )
    table = sample_table(replace(verification, samples=samples))
    assert len(table.lines) == 10
    assert [cell.text for cell in table.lines[3]][2:] == ["before 3", "(nothing)"]
    assert "(nothing)" in render_verification_page(replace(verification, samples=samples))


def test_an_empty_set_has_no_ablated_scores(verification):
    """Ablated scores of an empty set are neither drawn nor listed."""
    empty = replace(verification, heads=())
    names = [column.name for column, _ in task_table(empty).headings]
    assert "ablated" not in names
    assert "points lost" not in names
    assert "ablated" in [column.name for column, _ in task_table(verification).headings]


def test_failures_are_listed_where_there_are_any(verification):
    """Tasks without a degenerate output share a single line."""
    calm = tuple(
        replace(line, before=dict.fromkeys(line.before, 0.0), after=dict.fromkeys(line.after, 0.0),
                excess=0.0)
        for line in verification.failures
    )  # fmt: skip
    assert failure_table(replace(verification, failures=calm)).rows == ()
    html = " ".join(render_verification_page(replace(verification, failures=calm)).split())
    assert f"No output of {len(calm)} tasks is degenerate" in html
    bad = (replace(calm[0], excess=0.5), *calm[1:])
    assert len(failure_table(replace(verification, failures=bad)).rows) == 1
