"""Focus: screens components, tests joint sets, verifies the best on fresh items."""

from broca.searches.focus.search import METHOD, Focus

__all__ = ["METHOD", "Focus"]
