"""What an export is of, and what was checked of it: `export.json` in its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import AblationInfo, ModelInfo, Result, listed
from broca.results.verification import TaskDrop, Verdict

Form = Literal["adapter", "weights", "heads", "patch"]
"""An adapter of PEFT, a checkpoint, a list of components, or the changed tensors alone."""


@dataclass(frozen=True)
class BaseModel:
    """The model that an export is of.

    Attributes:
        id: Where it is loaded from: a hub id, a folder or a shipped model; None for a model in
            memory.
        revision: Commit on the hub; None for others.
        dtype: Number format of the weights that the export was made of.
    """

    id: str | None
    revision: str | None
    dtype: str


@dataclass(frozen=True)
class HeldOut:
    """What a run measured of the exported components.

    Attributes:
        task: The task that they were found or verified for.
        verdict: The verdict; None without statistics.
        drops: What every task lost on its report items.
        before: Score of every task on the intact model.
        after: The same with the components ablated.
    """

    task: str
    verdict: Verdict | None
    drops: tuple[TaskDrop, ...]
    before: dict[str, float]
    after: dict[str, float]


@dataclass(frozen=True)
class ReloadCheck:
    """The export, loaded by other libraries alone, against broca's own outputs.

    Attributes:
        libraries: What loaded it, with versions.
        prompts: Prompts that both read.
        tokens: Tokens that each continued them by.
        difference: Largest difference of a log-probability, over prompts and continuations.
        tolerance: The largest that counts as equal in this number format.
        same_continuations: Prompts that both continued by the same tokens.
    """

    libraries: dict[str, str]
    prompts: int
    tokens: int
    difference: float
    tolerance: float
    same_continuations: int


@dataclass(frozen=True)
class ScoreCheck:
    """The export's score by lm-eval's `hf` model against broca's under the mask.

    Attributes:
        task: The task.
        metric: Its metric.
        items: Items that both were asked.
        broca: Score of the ablated model.
        hf: Score of the export.
    """

    task: str
    metric: str
    items: int
    broca: float
    hf: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Export(Result, file="export.json", verb="broca export"):
    """What was exported, from what, and what was checked of it.

    Attributes:
        form: What was written: adapter, weights, heads or patch.
        model: The model that the components are of.
        base: Where it is loaded from.
        components: Names of what is ablated.
        ablation: What became of it.
        held_out: What a run measured of the components; None without a run.
        files: Size in bytes of every file.
        reloaded: What other libraries make of the export; None where it cannot be loaded.
        scored: lm-eval's score of the export; None where it was not requested.
        command: The command that repeats the export.
        pushed: Repository on the hub that it was pushed to; None where it was not.
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
    pushed: str | None = None

    @property
    def selected(self) -> tuple[str, ...]:
        """The components that are ablated."""
        return self.components

    def summary(self) -> tuple[str, ...]:
        """What was exported and what was checked."""
        size = sum(self.files.values())
        lines = [
            f"{self.form} of {self.model.name} without {listed(self.components)}"
            if self.ablation.scale == 0
            else f"{self.form} of {self.model.name} with {listed(self.components)} at "
            f"{self.ablation.scale:g}",
            f"{len(self.files)} files, {size:,} bytes",
        ]
        if (check := self.reloaded) is not None:
            by = ", ".join(f"{name} {version}" for name, version in check.libraries.items())
            lines.append(
                f"loaded by {by}: {check.same_continuations} of {check.prompts} continuations as "
                f"broca's, log-probabilities within {check.difference:.1e}"
            )
        if self.scored is not None:
            lines.append(
                f"lm-eval's hf scores {self.scored.hf:.4f} on {self.scored.task}, broca "
                f"{self.scored.broca:.4f} ({self.scored.items} items)"
            )
        if self.pushed is not None:
            lines.append(f"pushed to {self.pushed}")
        return tuple(lines)

    def records(self) -> list[dict[str, Any]]:
        """A line for each component: what it is and its factor."""
        return [
            {"component": name, "ablation": self.ablation.kind, "scale": self.ablation.scale}
            for name in self.components
        ]
