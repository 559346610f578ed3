"""Focus: screen cheaply, settle by joint sets, prove on fresh items."""

from broca.searches.focus.search import METHOD, Focus

__all__ = ["METHOD", "Focus"]
