"""How a task is asked: one frozen dataclass, with a sentence under each field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from broca.errors import BadInput

Reference = Callable[[Any], "str | Sequence[str] | None"]
"""A function of a document that returns a right answer in full, or the right answer followed by
wrong ones to compare it with, or None to leave the item out of the margin."""


@dataclass(frozen=True)
class TaskOptions:
    """How tasks are asked and scored; everything else is as their own files say.

    Raises:
        BadInput: A value that does not exist.
    """

    metric: str | None = None
    """Metric of the localized task, `NAME` or `NAME,FILTER` as lm-eval writes it; by default
    `acc_norm` where the task has it, else its first, after `flexible-extract` where it has that
    filter, else after its first."""

    num_fewshot: int | None = None
    """Solved examples before each question; by default what the task says. A task that fixes 0 is
    asked without examples, as in lm-eval."""

    limit: float | None = None
    """First documents of each task that are used; a share of them below 1."""

    chat_template: bool = False
    """Whether prompts are written in the tokenizer's chat template."""

    system_prompt: str | None = None
    """Text put before everything else, as the system's message in a chat template."""

    fewshot_as_multiturn: bool = True
    """Whether a chat template gets the solved examples as turns, or all in one message."""

    locate_split: str | None = None
    """Official split (`train`, `validation` or its own name) that the `locate` and `confirm`
    items come from; the `report` items are then all of the documents that the task is scored on."""

    reference: str | Reference = "own"
    """Answer whose probability is the margin of a generation: `own` is the intact model's, where it
    is right, `gold` the task's target, a function or `FILE.py:FUNCTION` whatever it returns."""

    def __post_init__(self) -> None:
        if self.num_fewshot is not None and self.num_fewshot < 0:
            raise BadInput(f"--num-fewshot must be 0 or more, not {self.num_fewshot}")
        if self.limit is not None and not (0 < self.limit < 1 or self.limit == int(self.limit) > 0):
            raise BadInput(
                f"--limit must be a number of documents or a share below 1, not {self.limit:g}"
            )
        if self.metric is not None and not self.metric.strip():
            raise BadInput("--metric is empty: give NAME or NAME,FILTER")
        if isinstance(self.reference, str) and not (
            self.reference in ("own", "gold") or ":" in self.reference
        ):
            raise BadInput(
                f"--reference '{self.reference}' is unknown: use own, gold or FILE.py:FUNCTION"
            )

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from the defaults, for `result.json`."""
        known = asdict(TaskOptions())
        values = {name: getattr(self, name) for name in known}
        if not isinstance(self.reference, str):
            function = self.reference
            values["reference"] = f"{function.__module__}:{function.__qualname__}"
        return {name: value for name, value in values.items() if value != known[name]}


def reference_function(options: TaskOptions) -> Reference | None:
    """The function that gives right answers, if one was named.

    Raises:
        BadInput: The file or the function does not exist, or cannot be loaded.
    """
    named = options.reference
    if not isinstance(named, str):
        return named
    if named in ("own", "gold"):
        return None
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    file, _, name = named.rpartition(":")
    path = Path(file).expanduser()
    spec = spec_from_file_location(path.stem, path) if path.suffix == ".py" else None
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(f"--reference '{named}': '{file}' is no Python file; use FILE.py:FUNCTION")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a file of the user's may raise anything
        raise BadInput(
            f"--reference '{named}': the file could not be run: {type(error).__name__}: {error}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise BadInput(f"--reference '{named}': '{file}' has no function '{name}'")
    return function  # type: ignore[no-any-return]
