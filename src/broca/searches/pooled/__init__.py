"""Pooled: every row of a search, whatever it was asked for, tells what sets are worth."""

from broca.searches.pooled.search import METHOD, Pooled

__all__ = ["METHOD", "Pooled"]
