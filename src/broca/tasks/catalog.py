"""Finds tasks by name: the shipped ones at once, a folder's, and every task of lm-eval."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from broca.errors import BadInput, BrocaError, TaskUnusable, UnknownName, nearest
from broca.hub import skip_retries_if_unreachable
from broca.tasks.benchmark import Benchmark
from broca.tasks.code import code_tasks, require_enclosed
from broca.tasks.tokenizing import RequestTokenizer


def shipped_folder() -> Path:
    """The folder of the tasks that are part of the package."""
    return Path(str(files("broca") / "tasks" / "shipped"))


class Catalog:
    """The tasks that a run can name.

    lm-eval scans thousands of files to know its own tasks; that is done only when a name is
    neither shipped nor in `include_path`, and once.

    Args:
        include_path: A folder of lm-eval YAML tasks to add.
        allow_code: Whether tasks may execute what the model writes, in a sandbox.

    Raises:
        BadInput: The folder does not exist or holds no task.
    """

    def __init__(self, include_path: str | Path | None = None, *, allow_code: bool = False) -> None:
        self._allow_code = allow_code
        self._include_path = Path(include_path).expanduser() if include_path else None
        if self._include_path is not None:
            if not self._include_path.is_dir():
                raise BadInput(f"--include-path '{include_path}' is not a folder; check the path")
            if not self.included:
                raise BadInput(
                    f"--include-path '{include_path}' holds no lm-eval task: no YAML file in it "
                    "names a 'task'"
                )

    @cached_property
    def _shipped_manager(self) -> Any:
        return self._manager(shipped_folder(), defaults=False)

    @cached_property
    def _included_manager(self) -> Any:
        return self._manager(self._include_path, defaults=False)

    @cached_property
    def _full_manager(self) -> Any:
        return self._manager(self._include_path, defaults=True)

    @staticmethod
    def _manager(path: Path | None, *, defaults: bool) -> Any:
        from lm_eval.tasks import TaskManager

        return TaskManager(
            include_path=None if path is None else str(path), include_defaults=defaults
        )

    @cached_property
    def shipped(self) -> tuple[str, ...]:
        """Names of the shipped tasks."""
        return tuple(self._shipped_manager.all_subtasks)

    @cached_property
    def included(self) -> tuple[str, ...]:
        """Names of the tasks in `include_path`."""
        return () if self._include_path is None else tuple(self._included_manager.all_subtasks)

    def load(
        self, name: str, tokenizer: RequestTokenizer, *, metric: str | None = None
    ) -> Benchmark:
        """Loads a task and builds its items.

        Raises:
            UnknownName: No task has this name.
            TaskUnusable: Its data are missing, it has no items, or it cannot be scored.
        """
        manager = self._manager_of(name)
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        if manager is not self._shipped_manager:
            skip_retries_if_unreachable()
        try:
            with code_tasks(allowed=self._allow_code):
                loaded = manager.load([name])["tasks"]
        except BrocaError:
            raise
        except Exception as error:  # a task file may raise anything
            raise TaskUnusable(
                f"task '{name}' could not be loaded: {_cause(error)}; check its file, its data "
                "and the network"
            ) from error
        if set(loaded) != {name}:
            raise TaskUnusable(
                f"'{name}' is a group of {len(loaded)} tasks: name one of them "
                f"({', '.join(sorted(loaded)[:5])}{', ...' if len(loaded) > 5 else ''})"
            )
        for task in loaded.values():
            require_enclosed(task, allowed=self._allow_code)
        return Benchmark.build(loaded[name], tokenizer, metric=metric)

    def _manager_of(self, name: str) -> Any:
        if name in self.included:
            return self._included_manager
        if name in self.shipped:
            return self._shipped_manager
        if name in self._full_manager.all_tasks:
            return self._full_manager
        known: Sequence[str] = [*self.shipped, *self.included, *self._full_manager.all_tasks]
        raise UnknownName(
            f"task '{name}' is unknown{nearest(name, known)}; `broca tasks` lists the shipped "
            "ones, --include-path adds a folder of your own"
        )


def _cause(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text.splitlines()[0]}".rstrip(".")
