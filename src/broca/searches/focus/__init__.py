"""Focus: screen cheaply, settle by joint sets, prove on fresh items."""

from broca.searches.focus.story import ROWS_PER_TASK, Focus

__all__ = ["ROWS_PER_TASK", "Focus"]
