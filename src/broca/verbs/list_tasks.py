"""`list_tasks`: the tasks of broca, of the paper and of a folder, without the rest of lm-eval's."""

from __future__ import annotations

from pathlib import Path

from broca.results.tasks import TaskList
from broca.tasks import Catalog
from broca.tasks.paper import PAPER_GROUPS, PAPER_TASKS


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
