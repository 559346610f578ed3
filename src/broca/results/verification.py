"""What a verification found, as plain data: `verification.json`, schema 1."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from broca.errors import BadInput

SCHEMA = 1

Role = Literal["task", "same_skill", "other"]
"""What a task is to a claim: the one claimed, another of the same capability, or a control."""

Label = Literal[
    "specific",
    "partly specific",
    "universal",
    "not localized at head level",
    "breaks the model",
    "inconclusive",
]
"""The verdicts; docs/verification.md has the rule."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class TaskDrop:
    """What one task lost on its report items.

    Attributes:
        task: The task.
        role: What it is to the claim.
        metric: Its main metric.
        items: Report items, the same before and after.
        before: Score of the intact model.
        after: Score with the set ablated.
        drop: What was lost, with a paired bootstrap interval.
        test: `mcnemar` for right/wrong metrics, `permutation` for continuous ones.
        p: Two-sided p-value of no change.
        p_holm: The same, Holm-corrected over the tasks that are not the claimed one; for the
            claimed task equal to `p`.
    """

    task: str
    role: Role
    metric: str
    items: int
    before: float
    after: float
    drop: Interval
    test: str
    p: float
    p_holm: float


@dataclass(frozen=True)
class ControlSet:
    """One random set: its members, the task's drop, and that minus the others' mean drop."""

    heads: tuple[str, ...]
    drop: float
    specific_drop: float | None


@dataclass(frozen=True)
class Standing:
    """Where the real set stands among random ones.

    Attributes:
        value: The real set's figure on the items of the controls.
        rank: 1 + the number of random sets that reach or exceed it.
        p: `rank` / (random sets + 1).
        effect: Its distance from the random sets' mean in their standard deviations; None where
            they do not differ among themselves.
    """

    value: float
    rank: int
    p: float
    effect: float | None


@dataclass(frozen=True)
class Controls:
    """Random sets of the same size as the real one.

    Attributes:
        kind: `layers`: as many from each layer; `norm`: heads of nearly the same output norm.
        items: Items of the task that each was measured on.
        other_items: Items of all other tasks together.
        drop: Standing in the task's drop.
        specific: Standing in the task's drop minus the others' mean; None without others.
        sets: The random sets.
    """

    kind: str
    items: int
    other_items: int
    drop: Standing
    specific: Standing | None
    sets: tuple[ControlSet, ...]


@dataclass(frozen=True)
class Member:
    """What one member contributes to the task's drop.

    Attributes:
        head: Its name.
        alone: Drop when it alone is ablated.
        restored: What of the set's drop goes away when it is the only one left intact.
        p: The smaller p-value of the two, doubled, Holm-corrected over the members.
        needed: Whether either is positive at the level of the verification.
    """

    head: str
    alone: Interval
    restored: Interval
    p: float
    needed: bool


@dataclass(frozen=True)
class CurvePoint:
    """Drops with the first k heads ablated; None where there are no such tasks."""

    k: int
    head: str | None
    drop: Interval
    same_skill: Interval | None
    others: Interval | None


@dataclass(frozen=True)
class Curve:
    """Drops from no head to the first ten, and the k from which they no longer grow."""

    points: tuple[CurvePoint, ...]
    flat_at: int


@dataclass(frozen=True)
class AblationCheck:
    """The claim under one kind of ablation: `survives` if both intervals lie above zero."""

    kind: str
    drop: Interval
    specific: Interval | None
    p: float
    survives: bool


@dataclass(frozen=True)
class TaskFailures:
    """Degenerate outputs of one task.

    Attributes:
        task: The task.
        items: Items looked at.
        before: Share of outputs with each failure mode, intact.
        after: The same with the set ablated.
        excess: Share of items that are degenerate with the set ablated and not intact.
        most_common: The most common output with the set ablated.
    """

    task: str
    items: int
    before: dict[str, float]
    after: dict[str, float]
    excess: float
    most_common: str


@dataclass(frozen=True)
class Sample:
    """One item's output, intact and with the set ablated."""

    task: str
    prompt: str
    target: str
    before: str
    after: str


@dataclass(frozen=True)
class Crossing:
    """Heads found on one task of a capability, measured on another."""

    found_on: str
    measured_on: str
    heads: tuple[str, ...]
    drop: Interval
    p: float


@dataclass(frozen=True)
class Verdict:
    """The verdict.

    Attributes:
        label: In one or a few words.
        text: In one sentence, with the numbers it rests on.
        items_needed: For `inconclusive`: report items that would do; else None.
    """

    label: Label
    text: str
    items_needed: int | None = None


@dataclass(frozen=True)
class Verification:
    """Everything that a verification measured.

    Attributes:
        model: Name of the model.
        fingerprint: Digest of its weights.
        task: The claimed task.
        heads: The set.
        ablation: What became of ablated components.
        scale: Their gate.
        seed: Seed of splits, controls and resampling.
        level: Level of the tests and intervals, 0.05.
        drops: Of the task, same-skill tasks and others.
        off_target: Mean drop of the others; None without others.
        specific: The task's drop minus that; None without others.
        controls: Random sets, kind by kind.
        members: What each member contributes.
        curve: k from 0 on; None where it was not asked for.
        ablations: The claim under other kinds of ablation.
        crossings: Generalization between tasks of the same capability.
        failures: Degenerate outputs, task by task.
        samples: Outputs side by side.
        verdict: The verdict.
        rows: Rows measured.
        notes: What the reader should know.
    """

    model: str
    fingerprint: str
    task: str
    heads: tuple[str, ...]
    ablation: str
    scale: float
    seed: int
    level: float
    drops: tuple[TaskDrop, ...]
    off_target: Interval | None
    specific: Interval | None
    controls: tuple[Controls, ...]
    members: tuple[Member, ...]
    curve: Curve | None
    ablations: tuple[AblationCheck, ...]
    crossings: tuple[Crossing, ...]
    failures: tuple[TaskFailures, ...]
    samples: tuple[Sample, ...]
    verdict: Verdict
    rows: int
    notes: tuple[str, ...] = ()
    broca: str = ""
    schema: int = SCHEMA

    def to_json(self) -> str:
        """The evidence as indented JSON, keys in a fixed order."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Verification:
        """Reads what `to_json` wrote.

        Raises:
            BadInput: Not such a file, or of another schema.
        """
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise BadInput(
                    f"the verification has schema {data['schema']}, this broca reads schema "
                    f"{SCHEMA}: use the version of broca that wrote it"
                )
            return cls.from_dict(data)
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"this is not a verification of broca ({type(error).__name__}: {error}); give the "
                "verification.json of an out folder"
            ) from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verification:
        """Builds the evidence from parsed JSON."""
        built: Verification = rebuild(cls, data)
        return built

    @classmethod
    def read(cls, path: str | Path) -> Verification:
        """Reads a `verification.json`, or the one in a folder.

        Raises:
            BadInput: It does not exist or is not a verification.
        """
        path = Path(path)
        file = path / "verification.json" if path.is_dir() else path
        if not file.is_file():
            raise BadInput(f"'{file}' does not exist: run `broca verify` on this folder first")
        return cls.from_json(file.read_text(encoding="utf-8"))

    def roles(self, role: Role) -> tuple[TaskDrop, ...]:
        """The drops of the tasks of one role."""
        return tuple(one for one in self.drops if one.role == role)


def rebuild(kind: Any, data: Any) -> Any:
    """Turns parsed JSON back into (nested) frozen dataclasses, by their type hints.

    Raises:
        TypeError: A field is missing, unknown, or of another shape.
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return None if data is None else rebuild(get_args(kind)[0], data)
    if origin is tuple:
        if not isinstance(data, list):
            raise TypeError(f"a list was expected, not {type(data).__name__}")
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return tuple(rebuild(inner[0], one) for one in data)
        return tuple(rebuild(part, one) for part, one in zip(inner, data, strict=True))
    if is_dataclass(kind):
        if not isinstance(data, Mapping):
            raise TypeError(f"an object was expected, not {type(data).__name__}")
        assert isinstance(kind, type)
        hints = get_type_hints(kind)
        unknown = set(data) - {one.name for one in fields(kind)}
        if unknown:
            raise TypeError(f"unknown field '{sorted(unknown)[0]}'")
        return kind(**{name: rebuild(hints[name], value) for name, value in data.items()})
    return data
