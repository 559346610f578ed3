"""Where the engine runs."""

from broca.executors.local import LocalExecutor
from broca.executors.references import Referenced, with_references

__all__ = ["LocalExecutor", "Referenced", "with_references"]
