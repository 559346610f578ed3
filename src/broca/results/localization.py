"""The frozen result of a localization: `result.json`, schema 1."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import Any, Protocol

from broca.errors import BadInput
from broca.results.typed import require_types
from broca.results.verification import Verification

SCHEMA = 1


@dataclass(frozen=True)
class ModelInfo:
    """The model that was examined.

    Attributes:
        name: What the user called it.
        fingerprint: Digest of its weights.
        architecture: Its class in transformers.
        layers: Decoder layers.
        heads: Query heads of one attention layer.
        kv_heads: Key/value heads of one attention layer.
        dtype: Number format of the weights.
    """

    name: str
    fingerprint: str
    architecture: str
    layers: int
    heads: int
    kv_heads: int
    dtype: str


@dataclass(frozen=True)
class SearchInfo:
    """How the heads were looked for: the method, its settings, and the seed."""

    method: str
    options: dict[str, Any]
    seed: int


@dataclass(frozen=True)
class AblationInfo:
    """What became of ablated components: the kind of replacement, and their gate."""

    kind: str
    scale: float


@dataclass(frozen=True)
class Cost:
    """What it took.

    Attributes:
        rows: (mask, item) rows that the search measured.
        verification_rows: Rows measured on the report items, before and after.
        tokens: Tokens that the model read or wrote, padding excluded.
        wall_s: Seconds from the loaded model to the result.
        measured: Rows of both kinds that the run measured itself, in all its processes; the others
            were in the journal, or were asked twice. None where that was not counted.
    """

    rows: int
    verification_rows: int
    tokens: int
    wall_s: float
    measured: int | None = None


@dataclass(frozen=True)
class AdditivityInfo:
    """How well effects add up, on masks that were held out in turn.

    Attributes:
        explained: Share of the variance of their responses that the linear model explains.
        rank_correlation: Spearman's, of predicted with measured responses.
        masks: How many masks.
    """

    explained: float
    rank_correlation: float
    masks: int


@dataclass(frozen=True)
class RankedComponent:
    """One line of the ranking.

    Attributes:
        name: Such as `L12H3`.
        layer: Decoder layer, from 0.
        head: Number within the layer.
        effect: Change of the response when it is ablated; negative = the task needs it.
        ci: Interval of the effect, where the method gives one.
        frequency: Share of resamples in which it is selected, where the method gives one.
        p_value: Of no harm, one-sided, where the method gives one.
        q_value: The same, corrected for the number of components.
    """

    name: str
    layer: int
    head: int | None
    effect: float
    ci: tuple[float, float] | None = None
    frequency: float | None = None
    p_value: float | None = None
    q_value: float | None = None


class NamedPart(Protocol):
    """What a line of a ranking says of a component."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def layer(self) -> int: ...  # noqa: D102
    @property
    def index(self) -> int | None: ...  # noqa: D102


def ranked(
    components: Sequence[NamedPart],
    effects: Sequence[float] | Any,
    order: Sequence[int],
    *,
    intervals: Any = None,
    frequency: Any = None,
    p_values: Any = None,
    q_values: Any = None,
) -> tuple[RankedComponent, ...]:
    """The lines of a ranking: components in an order, each with what is known of it.

    Args:
        components: All components, by column.
        effects: Effect of each, `(components,)`.
        order: Columns, most harmful to lose first.
        intervals: Interval of each effect, `(components, 2)`; NaN where there is none.
        frequency: How often each is selected, `(components,)`.
        p_values: Of no harm, `(components,)`.
        q_values: The same, corrected, `(components,)`.
    """

    def known(values: Any, column: int) -> float | None:
        return None if values is None else float(values[column])

    lines = []
    for column in order:
        low, high = (nan, nan) if intervals is None else intervals[column]
        lines.append(
            RankedComponent(
                name=components[column].name,
                layer=components[column].layer,
                head=components[column].index,
                effect=float(effects[column]),
                ci=None if isnan(low) else (float(low), float(high)),
                frequency=known(frequency, column),
                p_value=known(p_values, column),
                q_value=known(q_values, column),
            )
        )
    return tuple(lines)


@dataclass(frozen=True)
class Interaction:
    """How the effects of two components depend on one another, in the task's metric.

    Attributes:
        first: Name of the one.
        second: Name of the other.
        first_effect: Change of the score when the first alone is ablated.
        second_effect: The same of the second.
        joint_effect: Change when both are ablated.
        interaction: The joint effect less the two single ones: below zero where they stand in for
            each other, above zero where they harm the same answers.
        ci: 90 % interval of the interaction.
    """

    first: str
    second: str
    first_effect: float
    second_effect: float
    joint_effect: float
    interaction: float
    ci: tuple[float, float]


@dataclass(frozen=True)
class HeldOutScores:
    """What the selection costs, on items that the search never saw.

    Attributes:
        after: Score of every task with the selection ablated.
        drop: What the task lost.
        off_target_drop: What the others lost on average, same-skill tasks left out; None without
            others.
        specific_drop: The difference.
        items: Report items of every task.
    """

    after: dict[str, float]
    drop: float
    off_target_drop: float | None
    specific_drop: float
    items: dict[str, int]


@dataclass(frozen=True)
class Localization:
    """Everything that a localization found, and how.

    Attributes:
        broca: Version of broca.
        schema: Version of this layout.
        model: The model.
        task: The task that was localized.
        others: The tasks that the selection should leave alone.
        same_skill: Tasks of the same capability, reported apart.
        off_target_effects: Mean change of the other tasks' response when a component is ablated,
            where the method measures it.
        shared_effects: Of each component that the other tasks need too, where the method looks for
            them: minus what every task's score loses when it is ablated alone, on some `report`
            items of each. What they lose most to comes first.
        universal: Those of them that most tasks need, and about alike, by the rule of the atlas.
        search: The method and its settings.
        cost: Rows, tokens and time.
        baseline: Score of every task on the intact model, on its report items.
        ranking: All components, most harmful to lose first.
        selected: Names of the chosen components, at most k.
        abstained: Whether nothing was selected.
        reason: Why nothing was selected; empty otherwise.
        verification: The proof on the report items.
        response: What the effects are measured in.
        components: Which parts of the model could be ablated, such as `heads`.
        ablation: What became of them.
        metrics: Main metric of every task.
        task_options: How the tasks were asked, where that differs from their files.
        notes: What the reader should know, such as cut prompts or other tasks at chance.
        evidence: Statistics, controls and the verdict; None where they were not asked for.
        interactions: Pairs of the leading components, the strongest first, where they were asked
            for; on `confirm` items.
        additivity: How well effects add up; None where the method measures no random masks, or
            too few.
    """

    model: ModelInfo
    task: str
    others: tuple[str, ...]
    search: SearchInfo
    cost: Cost
    baseline: dict[str, float]
    ranking: tuple[RankedComponent, ...]
    selected: tuple[str, ...]
    abstained: bool
    reason: str
    verification: HeldOutScores
    response: str = "accuracy"
    components: str = "heads"
    ablation: AblationInfo = AblationInfo("zero", 0.0)
    metrics: dict[str, str] = field(default_factory=dict)
    task_options: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    same_skill: tuple[str, ...] = ()
    off_target_effects: dict[str, float] = field(default_factory=dict)
    shared_effects: dict[str, dict[str, float]] = field(default_factory=dict)
    universal: tuple[str, ...] = ()
    evidence: Verification | None = None
    interactions: tuple[Interaction, ...] = ()
    additivity: AdditivityInfo | None = None
    broca: str = ""
    schema: int = SCHEMA

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that were measured: the localized one, those of its skill, the others."""
        return (self.task, *self.same_skill, *self.others)

    def to_json(self) -> str:
        """The result as indented JSON, keys in a fixed order."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Localization:
        """Reads what `to_json` wrote.

        Raises:
            BadInput: Not such a result, or of another schema.
        """
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise BadInput(
                    f"the result has schema {data['schema']}, this broca reads schema {SCHEMA}: "
                    "use the version of broca that wrote it"
                )
            read = cls(
                **{
                    **data,
                    "model": ModelInfo(**data["model"]),
                    "others": tuple(data["others"]),
                    "search": SearchInfo(**data["search"]),
                    "cost": Cost(**data["cost"]),
                    "ranking": tuple(
                        RankedComponent(**{**one, "ci": one["ci"] and tuple(one["ci"])})
                        for one in data["ranking"]
                    ),
                    "selected": tuple(data["selected"]),
                    "ablation": AblationInfo(**data["ablation"]),
                    "verification": HeldOutScores(**data["verification"]),
                    "notes": tuple(data["notes"]),
                    "same_skill": tuple(data.get("same_skill", ())),
                    "universal": tuple(data.get("universal", ())),
                    "interactions": tuple(
                        Interaction(**{**one, "ci": tuple(one["ci"])})
                        for one in data.get("interactions", ())
                    ),
                    "evidence": data.get("evidence") and Verification.from_dict(data["evidence"]),
                    "additivity": data.get("additivity") and AdditivityInfo(**data["additivity"]),
                }
            )
            require_types(read, cls)
            return read
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise BadInput(
                f"this is not a result of broca ({type(error).__name__}: {error}); give the "
                "result.json of an out folder"
            ) from error

    @classmethod
    def read(cls, path: str | Path) -> Localization:
        """Reads a `result.json`, or the one in a folder.

        Raises:
            BadInput: It does not exist or is not a result.
        """
        path = Path(path)
        file = path / "result.json" if path.is_dir() else path
        if not file.is_file():
            raise BadInput(f"'{file}' does not exist: give the out folder of a finished run")
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"'{file}' cannot be read ({error}): give a result.json") from error
        return cls.from_json(text)
