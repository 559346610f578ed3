"""Tasks as `broca tasks` prints them: their list, and the prompts and metrics of a task."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from broca.results.base import Result
from broca.results.files import plain


@dataclass(frozen=True)
class PaperTask:
    """A task of the compressed-sensing paper.

    Attributes:
        name: lm-eval's name of the task, group or tag.
        metric: The metric that the paper reports, `NAME` or `NAME,FILTER`.
        skill: The skill that it represents in the paper.
        data: The source of its items in lm-eval.
        executes_code: Whether its metric executes code that the model wrote.
    """

    name: str
    metric: str
    skill: str
    data: str
    executes_code: bool = False


class TaskList(Result, file="tasks.json", verb="broca tasks"):
    """Tasks by origin.

    Attributes:
        shipped: Tasks of the package for the shipped models.
        instruct: Tasks of the package for chat models, which no shipped model can do.
        included: Tasks of the folder that was given.
        included_groups: Groups and tags of that folder.
        paper: lm-eval's tasks that the compressed-sensing paper uses.
        groups: Names that stand for several of the paper's tasks in `others`.
        sentences: What the package's tasks ask.
    """

    kind: Literal["task list"] = "task list"
    shipped: tuple[str, ...]
    instruct: tuple[str, ...]
    included: tuple[str, ...]
    included_groups: tuple[str, ...]
    paper: tuple[PaperTask, ...]
    groups: dict[str, tuple[str, ...]]
    sentences: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names that need no download: shipped tasks, and the folder's tasks and groups."""
        return (*self.shipped, *self.instruct, *self.included, *self.included_groups)

    def terminal(self) -> Iterator[str]:
        """Yields the number of tasks, then a line for each."""
        yield (
            f"{len(self.shipped) + len(self.instruct)} tasks of the package, "
            f"{len(self.included)} of the folder, {len(self.paper)} of the paper"
        )
        width = max(map(len, self.names), default=0)
        for name in (*self.shipped, *self.instruct):
            chat = " (for chat models)" * (name in self.instruct)
            yield f"{name:<{width}}  {self.sentences.get(name, '')}{chat}".rstrip()
        yield from (f"{task} (of the folder)" for task in self.included)
        yield from (f"{group} (group of the folder)" for group in self.included_groups)
        for task in self.paper:
            code = ", executes code" if task.executes_code else ""
            yield f"{task.name} (lm-eval's, {task.skill}: {task.metric}{code})"
        for group, members in self.groups.items():
            yield f"{group} (the paper's group, as other tasks: {', '.join(members)})"

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each task and group: its name and origin."""
        return [
            {"task": name, "origin": origin}
            for origin in ("shipped", "instruct", "included", "included_groups")
            for name in getattr(self, origin)
        ] + [{"task": task.name, "origin": "paper"} for task in self.paper]


class TaskDescription(Result, file="task.json", verb="broca tasks NAME"):
    """The prompts, metrics and items of a task.

    Attributes:
        name: Name of the task.
        tasks: The tasks of lm-eval that it consists of.
        request_kind: Kind of its requests.
        items: Number of items.
        metric: The metric that is used.
        metrics: All its metrics.
        chance: Score of guessing.
        requests: Number of requests of all items.
        prompt_tokens: Number of tokens of the longest prompt.
        cut_items: Number of prompts that were truncated from the left to fit the model's context.
        notes: Notes for the reader.
        first_prompt: The prompt of the first item.
        first_target: Right answer of the first item.
    """

    kind: Literal["task description"] = "task description"
    name: str
    tasks: tuple[str, ...]
    request_kind: str
    items: int
    metric: str
    metrics: tuple[str, ...]
    chance: float
    requests: int
    prompt_tokens: int
    cut_items: int
    notes: tuple[str, ...]
    first_prompt: str
    first_target: str

    def terminal(self) -> Iterator[str]:
        """Yields a line for each part of the description."""
        for name, value in self.records()[0].items():
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            yield f"{name.replace('_', ' ')}: {text}"

    def records(self) -> list[dict[str, Any]]:
        """Returns one line, which has every key of the task."""
        names = [part.name for part in fields(self)[len(fields(Result)) :]]
        return [{name: plain(getattr(self, name)) for name in names}]
