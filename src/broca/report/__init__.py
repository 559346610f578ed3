"""A frozen result in, one self-contained HTML page out. Reads the result alone."""

from broca.report.page import render_html

__all__ = ["render_html"]
