"""Families of prompts that differ only in their operation, as YAML."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from broca.errors import BadInput, UnknownName, first_line, nearest

SHIPPED = ("letters", "sums")
"""The families of the package, for the shipped models."""

_FEWEST_ITEMS = 16


@dataclass(frozen=True)
class Family:
    """Prompts of the same form.

    Attributes:
        name: Name of the family.
        templates: Texts with `{operation}` and `{operand}`.
        operations: Word of each operation.
        neutral: A word of the same length in tokens for no operation.
        items: Operands, each with the answer of every operation.
        tasks: Tasks of the family; a run's heads are tested on a family of its own task.
    """

    name: str
    templates: tuple[str, ...]
    operations: dict[str, str]
    neutral: str
    items: tuple[tuple[str, dict[str, str]], ...]
    tasks: tuple[str, ...] = ()

    def require_task(self, task: str) -> None:
        """Refuses a run whose task is not in `tasks`.

        Raises:
            BadInput: The task is not in `tasks`.
        """
        if task not in self.tasks:
            asks = f"asks for {' and '.join(self.tasks)}" if self.tasks else "names no `tasks`"
            raise BadInput(
                f"the run is about task '{task}', and family '{self.name}' {asks}: its outcome "
                f"would say nothing about the run; give a `family` file whose `tasks` names "
                f"'{task}' (docs/stress.md), or name the `heads` to test them apart from the run"
            )

    def prompt(self, operation: str | None, operand: str, *, template: int = 0) -> str:
        """Returns the prompt of an operation on an operand; with the neutral word for None."""
        word = self.neutral if operation is None else self.operations[operation]
        return self.templates[template].replace("{operation}", word).replace("{operand}", operand)


def load_family(name: str | Path) -> Family:
    """Loads a shipped family by name, or another from a YAML file.

    Raises:
        UnknownName: The name is neither a shipped family nor a file.
        BadInput: The file does not describe a family.
    """
    if str(name) in SHIPPED:
        text = (files("broca.stress_tests") / "families" / f"{name}.yaml").read_text(
            encoding="utf-8"
        )
    else:
        path = Path(name).expanduser()
        if not path.is_file():
            raise UnknownName(
                f"family '{name}' is unknown{nearest(str(name), SHIPPED)}; shipped are "
                f"{', '.join(SHIPPED)}, or give a YAML file (docs/stress.md)"
            )
        text = path.read_text(encoding="utf-8")
    import yaml

    try:
        return _family(yaml.safe_load(text))
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"family '{name}' cannot be used ({type(error).__name__}: {first_line(error)}): it "
            "needs family, templates, operations, neutral and items (docs/stress.md)"
        ) from error


def _family(data: dict[str, Any]) -> Family:
    operations = {str(key): str(word) for key, word in data["operations"].items()}
    templates = tuple(str(template) for template in data["templates"])
    if not templates or not operations:
        raise ValueError("no templates or no operations")
    for template in templates:
        if "{operation}" not in template or "{operand}" not in template:
            raise ValueError(f"template '{template}' lacks {{operation}} or {{operand}}")
    items = tuple(
        (str(item["operand"]), {key: str(item["answers"][key]) for key in operations})
        for item in data["items"]
    )
    if len(items) < _FEWEST_ITEMS:
        raise ValueError(f"{len(items)} items are too few: give at least {_FEWEST_ITEMS}")
    tasks = tuple(str(task) for task in data.get("tasks") or ())
    return Family(str(data["family"]), templates, operations, str(data["neutral"]), items, tasks)
