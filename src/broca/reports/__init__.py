"""A frozen result in, one self-contained HTML page out. Reads the result alone."""

from broca.reports.atlas import render_atlas_page
from broca.reports.page import render_html
from broca.reports.stress import render_stress_page
from broca.reports.verification import render_verification, render_verification_page

__all__ = [
    "render_atlas_page",
    "render_html",
    "render_stress_page",
    "render_verification",
    "render_verification_page",
]
