"""The subject of the live page: a model, known effects of its components, and sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broca.errors import BadInput
from broca.results.atlas import Atlas
from broca.results.localization import Localization
from broca.results.reading import read
from broca.results.verification import Verification


@dataclass(frozen=True)
class ExplorerSubject:
    """The subject of the live page.

    Attributes:
        model: Name, folder or id of the model.
        sets: Sets of components by name, such as a run's selection.
        effects: Known effects of components, negative for a loss; may be empty.
        unit: Quantity of the effects.
        tasks: Tasks of the result; empty for those of `auto`.
    """

    model: str
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    tasks: tuple[str, ...] = ()

    @classmethod
    def of(cls, model_or_run: str | Path) -> ExplorerSubject:
        """Returns the subject of a model's name, or of a folder or file of broca.

        Raises:
            BadInput: The result in the file or folder has no components.
        """
        path = Path(model_or_run).expanduser()
        if (path.is_dir() and not any(path.glob("*.json"))) or not path.exists():
            return cls(str(model_or_run))
        if path.is_dir() and (path / "config.json").is_file():
            return cls(str(model_or_run))  # a model's folder
        result = read(path)
        if isinstance(result, Localization):
            effects = {line.name: line.effect for line in result.ranking}
            unit = f"estimated effect on {result.response} in {result.task}"
            sets = {f"needed for {result.task}": result.selected} if result.selected else {}
            return cls(result.model.name, sets, effects, unit, result.tasks)
        if isinstance(result, Verification):
            sets = {f"verified on {result.task}": result.heads}
            return cls(result.model.name, sets, tasks=tuple(line.task for line in result.drops))
        if isinstance(result, Atlas):
            selected = {task.name: result.selected(task.name) for task in result.tasks}
            sets = {f"needed for {task}": names for task, names in selected.items() if names}
            names = tuple(task.name for task in result.tasks)
            return cls(result.model.name, sets, tasks=names)
        raise BadInput(
            f"'{path}' is {result.described()}, which names no components of a model: give a model "
            "or the out folder of `broca localize`, `verify` or `atlas`"
        )

    @property
    def shown_name(self) -> str:
        """Name of the model on the page; for a folder, only the last part."""
        return Path(self.model).name if Path(self.model).exists() else self.model
