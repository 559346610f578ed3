"""Results as pages, figures and pictures; a page needs nothing from outside."""

from broca.reports.atlas import render_atlas_page
from broca.reports.figure import Figure
from broca.reports.page import render_html
from broca.reports.picture import picture
from broca.reports.stress import render_stress_page
from broca.reports.verification import render_verification_page
from broca.reports.writing import plot, plots, render, write

__all__ = [
    "Figure",
    "picture",
    "plot",
    "plots",
    "render",
    "render_atlas_page",
    "render_html",
    "render_stress_page",
    "render_verification_page",
    "write",
]
