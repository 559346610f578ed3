"""`list_tasks`: the tasks that can be named without lm-eval's own thousands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broca.tasks import Catalog
from broca.tasks.paper import PAPER_GROUPS, PAPER_TASKS, PaperTask


@dataclass(frozen=True)
class TaskList:
    """Tasks by where they come from.

    Attributes:
        shipped: Tasks that are part of the package.
        instruct: Tasks of the package for chat models, which no shipped model can do.
        included: Tasks of the folder that was given.
        paper: lm-eval's tasks that the compressed-sensing paper uses.
        groups: Names that stand for several of the paper's tasks in `others`.
    """

    shipped: tuple[str, ...]
    instruct: tuple[str, ...]
    included: tuple[str, ...]
    paper: tuple[PaperTask, ...]
    groups: dict[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks that need nothing from elsewhere: shipped ones and those of the folder."""
        return (*self.shipped, *self.instruct, *self.included)


def list_tasks(*, include_path: str | Path | None = None) -> TaskList:
    """Lists the package's tasks, the paper's and a folder's.

    Args:
        include_path: A folder of lm-eval YAML tasks to add.

    Raises:
        BadInput: The folder does not exist.
    """
    catalog = Catalog(include_path)
    return TaskList(
        shipped=catalog.shipped,
        instruct=catalog.instruct,
        included=catalog.included,
        paper=tuple(PAPER_TASKS.values()),
        groups={name: tuple(members) for name, members in PAPER_GROUPS.items()},
    )
