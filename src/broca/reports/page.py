"""The report of a run: figures and tables of one localization, with everything it needs inside."""

from __future__ import annotations

from markupsafe import Markup

from broca.reports.figures import before_after, heatmap
from broca.reports.filling import filled
from broca.reports.verification import render_verification
from broca.results.localization import Localization
from broca.results.stress_test import StressTest
from broca.results.verification import Verification

TABLE_LINES = 20
"""Lines of the ranking table; the heatmap shows every head."""


def render_html(
    result: Localization,
    verification: Verification | None = None,
    stress: StressTest | None = None,
) -> str:
    """Renders a result as one HTML page that needs nothing from outside.

    `verification` is a later one, such as `broca verify` makes; the result's own by default. A
    stress test is summed up; `stress.html`, in the same folder, has its numbers.
    Names of models, tasks and heads are escaped: they come from files and may hold anything.
    """
    verification = verification or result.verification
    return filled(
        "page",
        {"heatmap": heatmap(result), "bars": before_after(result.verification)},
        result=result,
        shown=result.ranking[:TABLE_LINES],
        verification=Markup(
            "" if verification.verdict is None else render_verification(verification)
        ),
        stress=stress,
    )
