"""A frozen result in, one self-contained HTML page out. Reads the result alone."""

from broca.report.atlas import render_atlas_page
from broca.report.page import render_html
from broca.report.stress import render_stress_page
from broca.report.verification import render_verification, render_verification_page

__all__ = [
    "render_atlas_page",
    "render_html",
    "render_stress_page",
    "render_verification",
    "render_verification_page",
]
