"""The sections of a verification: the verdict first, outputs side by side."""

import re
from dataclasses import replace

import pytest
from simulated import toy_verification

from broca.reports.verification import render_verification
from broca.results.verification import Sample


@pytest.fixture(scope="module")
def verification():
    """Of a simulated model."""
    return toy_verification()


def test_the_verdict_stands_first_with_its_numbers(verification):
    """In words, before any table."""
    html = render_verification(verification)
    assert f"Verdict: {verification.verdict.label}" in html
    assert html.index(verification.verdict.text.split("(")[0]) < html.index("<table>")
    assert re.search(r"loses [\d.]+ points \[[\d.-]+, [\d.-]+\] \(p ", verification.verdict.text)


def test_ten_outputs_stand_side_by_side(verification):
    """Prompt, answer, intact and ablated; an empty output is said to be one."""
    samples = tuple(
        Sample("adding", f"prompt {n}", "x", f"before {n}", " \n" if n else "y") for n in range(10)
    )
    html = " ".join(render_verification(replace(verification, samples=samples)).split())
    table = html[html.index("side by side") :]
    assert table.count("<tr>") == 11
    assert '<td class="text">before 3</td> <td class="text"><span class="note">(nothing)' in table
    assert table.count("(nothing)") == 9
