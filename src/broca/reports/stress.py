"""A stress test as one HTML page."""

from __future__ import annotations

from broca.reports.filling import filled
from broca.results.stress_test import StressTest


def render_stress_page(stress: StressTest) -> str:
    """Renders a stress test as one HTML page that needs nothing from outside; text is escaped."""
    return filled("stress", stress=stress)
