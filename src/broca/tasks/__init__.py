"""Tasks of lm-eval and shipped tasks, with their items, splits and metrics."""

from broca.options import TaskOptions
from broca.tasks.benchmark import Benchmark
from broca.tasks.catalog import PAPER_GROUPS, PAPER_TASKS, Catalog, shipped_folder
from broca.tasks.examples import Task
from broca.tasks.items import Generation, Item, LogLikelihood, Margin, Output, Request, Split
from broca.tasks.tokenizer import RequestTokenizer, says_date

__all__ = [
    "PAPER_GROUPS",
    "PAPER_TASKS",
    "Benchmark",
    "Catalog",
    "Generation",
    "Item",
    "LogLikelihood",
    "Margin",
    "Output",
    "Request",
    "RequestTokenizer",
    "Split",
    "Task",
    "TaskOptions",
    "says_date",
    "shipped_folder",
]
