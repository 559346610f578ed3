"""An atlas as plain data: `atlas.json`, schema 1."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from broca.errors import BadInput
from broca.results.localization import AblationInfo, ModelInfo
from broca.results.typed import require_types
from broca.results.verification import rebuild

SCHEMA = 1
NAME = "atlas.json"

Rows = tuple[tuple[float, ...], ...]
"""A matrix, tasks x components, row by row."""


@dataclass(frozen=True)
class AtlasTask:
    """One row of the matrix.

    Attributes:
        name: The task.
        capability: What it measures.
        metric: Its main metric.
        intact: Its score on the intact model, on the same items.
        items: Items that the masks were measured on.
        at_chance: Whether the intact model cannot do it: it can show no damage, and counts neither
            as a task that is hurt nor as a control.
        change: Mean change of the response under the masks.
        explained: Share of the response's variance on held-out masks that effects explain.
    """

    name: str
    capability: str
    metric: str
    intact: float
    items: int
    at_chance: bool
    change: float
    explained: float


@dataclass(frozen=True)
class UniversalComponent:
    """A component that most tasks need, and about alike (docs/atlas.md has the rule).

    Attributes:
        name: Such as `L0H3`.
        effect: Its mean effect over the tasks that the model can do.
        hurts: The tasks that its loss hurts.
        effects: Its effect on every task.
    """

    name: str
    effect: float
    hurts: tuple[str, ...]
    effects: dict[str, float]


@dataclass(frozen=True)
class SelectedComponent:
    """A component that a task needs beyond the others.

    Attributes:
        name: Such as `L0H3`.
        effect: Its effect on the task.
        ci: 90 % interval of it.
        contrast: The effect minus its mean effect on the tasks of other capabilities.
        contrast_ci: 90 % interval of that.
    """

    name: str
    effect: float
    ci: tuple[float, float]
    contrast: float
    contrast_ci: tuple[float, float]


@dataclass(frozen=True)
class Selection:
    """What one task needs beyond the others, as far as a screen can tell.

    Attributes:
        task: The task.
        controls: The tasks of other capabilities that it was compared with.
        components: At most k components, the largest contrast first.
        reason: Why there are none; empty otherwise.
    """

    task: str
    controls: tuple[str, ...]
    components: tuple[SelectedComponent, ...]
    reason: str


@dataclass(frozen=True)
class Cluster:
    """Components whose effects over the tasks have the same profile.

    Attributes:
        components: Their names, neighbours alike.
        effects: Their mean effect on every task.
    """

    components: tuple[str, ...]
    effects: dict[str, float]


@dataclass(frozen=True)
class HeadSet:
    """The selected heads of all tasks of one capability."""

    capability: str
    heads: tuple[str, ...]


@dataclass(frozen=True)
class GroupTest:
    """Whether selected heads of a capability share key/value groups more often than chance.

    Attributes:
        group_size: Query heads of a key/value group.
        sets: The heads of each capability that has a selection.
        pairs: Pairs of heads of one capability in one group.
        expected: Their mean number when heads change places within their layers.
        effect: `pairs` minus `expected`, in standard deviations; None where it cannot vary.
        p: One-sided p-value of the permutation test.
        permutations: How many were tried.
    """

    group_size: int
    sets: tuple[HeadSet, ...]
    pairs: int
    expected: float
    effect: float | None
    p: float
    permutations: int


@dataclass(frozen=True)
class AtlasCost:
    """What it took.

    Attributes:
        rows: (mask, item) rows of the measurement, intact and pilot included.
        scoring_rows: Rows in the tasks' own metrics on the intact model.
        tokens: Tokens that the model read or wrote, padding excluded.
        wall_s: Seconds from the loaded model to the atlas.
        measured: Rows of both kinds that were not in the journal yet.
    """

    rows: int
    scoring_rows: int
    tokens: int
    wall_s: float
    measured: int


@dataclass(frozen=True)
class Atlas:
    """Every component's effect on every task, and what that says.

    Attributes:
        model: The model.
        tasks: Rows of the matrix, tasks of like profiles beside one another.
        components: Columns of the matrix, components of like profiles beside one another; those
            without a sure effect come last.
        effects: Change of the response when the component is ablated besides the others of a random
            mask; negative = the task needs it.
        low: Lower ends of the 90 % intervals.
        high: Upper ends.
        universal: Components that most tasks need, and about alike, worst first.
        selections: What each task needs beyond the others, in the order of `tasks`.
        clusters: Components that surely hurt a task, by profile.
        task_clusters: Tasks by profile.
        groups: Whether selections keep to key/value groups; None where that means nothing.
        groups_note: Why not; empty otherwise.
        response: What effects are measured in.
        kinds: Which parts of the model are components, such as `heads`.
        ablation: What became of ablated components.
        masks: Fresh masks that effects were estimated from.
        share: Mean share of the components that a mask ablated, as the pilot chose.
        least: Least effect that counts.
        k: Most components of a selection.
        resamples: Resamples behind the intervals.
        shrunk: Whether masks were so few that effects are too small.
        seed: Seed of everything random.
        cost: What it took.
        notes: What the reader should know.
        broca: Version of broca.
        schema: Version of this layout.
    """

    model: ModelInfo
    tasks: tuple[AtlasTask, ...]
    components: tuple[str, ...]
    effects: Rows
    low: Rows
    high: Rows
    universal: tuple[UniversalComponent, ...]
    selections: tuple[Selection, ...]
    clusters: tuple[Cluster, ...]
    task_clusters: tuple[tuple[str, ...], ...]
    groups: GroupTest | None
    groups_note: str
    response: str
    kinds: str
    ablation: AblationInfo
    masks: int
    share: float
    least: float
    k: int
    resamples: int
    shrunk: bool
    seed: int
    cost: AtlasCost
    notes: tuple[str, ...] = ()
    broca: str = ""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        shape = [len(self.components)] * len(self.tasks)
        for name in ("effects", "low", "high"):
            if [len(row) for row in getattr(self, name)] != shape:
                raise ValueError(f"{name} is no matrix of tasks x components")

    def effect(self, task: str, component: str) -> float:
        """One cell of the matrix.

        Raises:
            KeyError: No such row or column.
        """
        rows = {one.name: row for one, row in zip(self.tasks, self.effects, strict=True)}
        return dict(zip(self.components, rows[task], strict=True))[component]

    def selected(self, task: str) -> tuple[str, ...]:
        """Names of what a task needs beyond the others.

        Raises:
            KeyError: The atlas has no such task.
        """
        found = {one.task: tuple(each.name for each in one.components) for one in self.selections}
        return found[task]

    def to_json(self) -> str:
        """The atlas as indented JSON, keys in a fixed order."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Atlas:
        """Reads what `to_json` wrote.

        Raises:
            BadInput: Not an atlas, or of another schema.
        """
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise BadInput(
                    f"the atlas has schema {data['schema']}, this broca reads schema {SCHEMA}: "
                    "use the version of broca that wrote it"
                )
            read: Atlas = rebuild(cls, data)
            require_types(read, cls)
            return read
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise BadInput(
                f"this is not an atlas of broca ({type(error).__name__}: {error}); give the "
                f"{NAME} of an out folder"
            ) from error

    @classmethod
    def read(cls, path: str | Path) -> Atlas:
        """Reads an `atlas.json`, or the one in a folder.

        Raises:
            BadInput: It does not exist or is not an atlas.
        """
        path = Path(path)
        file = path / NAME if path.is_dir() else path
        if not file.is_file():
            raise BadInput(f"'{file}' does not exist: run `broca atlas` first")
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"'{file}' cannot be read ({error}): give an {NAME}") from error
        return cls.from_json(text)
