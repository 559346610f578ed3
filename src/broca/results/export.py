"""The record of an export and its checks: `export.json` in its folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import AblationInfo, ModelInfo, Result, joined_names
from broca.results.verification import TaskDrop, Verdict

Form = Literal["adapter", "weights", "heads"]
"""A PEFT adapter, a checkpoint, or a list of components."""


@dataclass(frozen=True)
class BaseModel:
    """The model that was exported.

    Attributes:
        id: Hub id, folder or shipped model from which it is loaded; None for a model in memory.
        revision: Commit on the hub; None for a model that is not from the hub.
        dtype: Number format of the exported weights.
    """

    id: str | None
    revision: str | None
    dtype: str


@dataclass(frozen=True)
class HeldOut:
    """The measurements of the exported components by a run.

    Attributes:
        task: The task for which they were selected or verified.
        verdict: The verdict; None without statistics.
        drops: Scores of every task on its report items, and their loss.
    """

    task: str
    verdict: Verdict | None
    drops: tuple[TaskDrop, ...]


@dataclass(frozen=True)
class ReloadCheck:
    """The comparison of the export, loaded by other libraries only, with broca's ablated model.

    Attributes:
        libraries: The libraries that loaded it, with versions.
        prompts: Number of prompts.
        tokens: Number of tokens of each continuation.
        difference: Largest difference of a log-probability, over prompts and continuations.
        tolerance: Largest difference that counts as equal in this number format: a share of the
            spread of log-probabilities, or twice what they change by if all gates are larger by
            one unit in the last place.
        same_continuations: Number of prompts with the same continuation.
    """

    libraries: dict[str, str]
    prompts: int
    tokens: int
    difference: float
    tolerance: float
    same_continuations: int


@dataclass(frozen=True)
class ScoreCheck:
    """The score of the export by lm-eval's `hf` model, and broca's score of the ablated model.

    Attributes:
        task: The task.
        metric: Metric of the task.
        items: Number of items.
        broca: Score of the ablated model.
        hf: Score of the export.
    """

    task: str
    metric: str
    items: int
    broca: float
    hf: float


class Export(Result, file="export.json", verb="broca export"):
    """An export, its source and its checks.

    Attributes:
        form: Form of the export: adapter, weights or heads.
        model: The model of the components.
        base: The source of the model.
        components: Names of the ablated components.
        ablation: How they are ablated.
        held_out: Measurements of the components by a run; None without a run.
        files: Size in bytes of every file.
        reloaded: The check with other libraries; None if they cannot load the export.
        scored: The check with lm-eval; None if it was not requested.
        command: The command that repeats the export.
    """

    kind: Literal["export"] = "export"
    form: Form
    model: ModelInfo
    base: BaseModel
    components: tuple[str, ...]
    ablation: AblationInfo
    held_out: HeldOut | None = None
    files: dict[str, int]
    reloaded: ReloadCheck | None = None
    scored: ScoreCheck | None = None
    command: str = ""

    @property
    def selected(self) -> tuple[str, ...]:
        """The ablated components."""
        return self.components

    def terminal(self) -> Iterator[str]:
        """Yields the export and its checks."""
        names, scale = joined_names(self.components), self.ablation.scale
        how = f"with {names} at {scale:g}" if scale else f"without {names}"
        yield f"{self.form} of {self.model.name} {how} ({self.ablation.kind} ablation)"
        yield f"{len(self.files)} files, {sum(self.files.values()):,} bytes"
        if (check := self.reloaded) is not None:
            by = ", ".join(f"{name} {version}" for name, version in check.libraries.items())
            yield (
                f"loaded by {by}: {check.same_continuations} of {check.prompts} continuations as "
                f"broca's, log-probabilities within {check.difference:.1e}"
            )
        if self.scored is not None:
            yield (
                f"lm-eval's hf scores {self.scored.hf:.4f} on {self.scored.task}, broca "
                f"{self.scored.broca:.4f} ({self.scored.items} items)"
            )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component: its parts and its factor."""
        return [
            {"component": name, "ablation": self.ablation.kind, "scale": self.ablation.scale}
            for name in self.components
        ]
