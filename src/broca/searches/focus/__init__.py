"""Focus: screen cheaply, settle by joint sets, prove on fresh items."""

from broca.searches.focus.search import METHOD, ROWS_PER_TASK, Focus

__all__ = ["METHOD", "ROWS_PER_TASK", "Focus"]
