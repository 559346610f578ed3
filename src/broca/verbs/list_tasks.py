"""`list_tasks`: the tasks of broca, of the paper and of a folder, without the rest of lm-eval's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broca.tasks import Catalog
from broca.tasks.paper import PAPER_GROUPS, PAPER_TASKS, PaperTask


@dataclass(frozen=True)
class TaskList:
    """Tasks by origin.

    Attributes:
        shipped: Tasks of the package for the shipped models.
        instruct: Tasks of the package for chat models, which no shipped model can do.
        included: Tasks of the folder that was given.
        included_groups: Groups and tags of that folder.
        paper: lm-eval's tasks that the compressed-sensing paper uses.
        groups: Names that stand for several of the paper's tasks in `others`.
    """

    shipped: tuple[str, ...]
    instruct: tuple[str, ...]
    included: tuple[str, ...]
    included_groups: tuple[str, ...]
    paper: tuple[PaperTask, ...]
    groups: dict[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names that need no download: shipped tasks, and the folder's tasks and groups."""
        return (*self.shipped, *self.instruct, *self.included, *self.included_groups)


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
        included_groups=catalog.included_groups,
        paper=tuple(PAPER_TASKS.values()),
        groups={name: tuple(members) for name, members in PAPER_GROUPS.items()},
    )
