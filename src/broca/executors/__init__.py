"""Where the engine runs, and what it keeps."""

from broca.executors.base import Executor
from broca.executors.journaled import JournaledExecutor, Recording
from broca.executors.local import LocalExecutor
from broca.executors.references import Referenced, with_references

__all__ = [
    "Executor",
    "JournaledExecutor",
    "LocalExecutor",
    "Recording",
    "Referenced",
    "with_references",
]
