"""The options of locating, selecting and training neurons."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated

from broca.errors import BadInput, nearest
from broca.options.keywords import without


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Which neurons are selected, on an item or on a data set.

    Raises:
        BadInput: A value that does not exist.
    """

    steps: int = 19
    """Steps of the integrated gradients."""

    sigma: float = 6.0
    """Standard deviations above the mean that a score must exceed."""

    scope: str = "global"
    """Mean and deviation over all neurons, global, or over those of each layer."""

    aggregate: str = "mean"
    """How to combine items: mean of their scores, or vote of their sets."""

    share: float = 0.5
    """With vote: minimum share of items that must select a neuron."""

    count: int | None = None
    """Select this many top-scoring neurons instead of using `sigma`."""

    def __post_init__(self) -> None:
        if self.scope not in ("global", "layer"):
            raise BadInput(
                f"`scope` '{self.scope}' is unknown{nearest(self.scope, ('global', 'layer'))}: use "
                "global or layer"
            )
        if self.aggregate not in ("mean", "vote"):
            raise BadInput(
                f"`aggregate` '{self.aggregate}' is unknown"
                f"{nearest(self.aggregate, ('mean', 'vote'))}: use mean or vote"
            )
        if not math.isfinite(self.sigma):
            raise BadInput(f"`sigma` must be a number, not {self.sigma}")
        if not 0 < self.share <= 1:
            raise BadInput(f"`share` must lie above 0 and at most at 1, not at {self.share:g}")
        for name, value in (("steps", self.steps), ("count", self.count)):
            if value is not None and value < 1:
                raise BadInput(f"`{name}` must be at least 1, not {value}")


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options of individual methods of locating neurons."""

    threshold: float = 0.2
    """Knowledge neurons: share of an item's highest score that a score must exceed."""

    knowledge_share: float = 0.4
    """Knowledge neurons: share of items that must select a neuron."""

    search: str = "masked-gradient"
    """Search of sensing: masked-gradient, or a method of localize."""

    rows: int | None = None
    """Rows of sensing; default: as many as cost the same as integrated gradients."""


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How many items of the data sets are used, and how they are read and split.

    Raises:
        BadInput: Names of columns that are not of the form prompt=COLUMN,answer=COLUMN.
    """

    items: int = 100
    """Maximum number of items of each task to locate and train on, and of validation items."""

    seed: int = 0
    """Seed of the item split, of all random draws and of the intervals."""

    answer_tokens: int | None = None
    """Count only this many first tokens of an answer (data: sets)."""

    fields: str = ""
    """Columns of a data: set, prompt=COLUMN,answer=COLUMN."""

    def __post_init__(self) -> None:
        for pair in self._pairs():
            if not all(pair):
                raise BadInput(
                    f"`fields` '{self.fields}' is not of the form prompt=COLUMN,answer=COLUMN"
                )

    @property
    def columns(self) -> dict[str, str]:
        """The columns by what they hold: `prompt` and `answer`."""
        return dict(self._pairs())

    def _pairs(self) -> list[tuple[str, str]]:
        parts = [part.partition("=") for part in self.fields.split(",") if part.strip()]
        return [(name.strip(), column.strip()) for name, _, column in parts]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How neurons are trained.

    Raises:
        BadInput: A number out of range.
    """

    lr: float = 1e-5
    """Learning rate of Adam."""

    epochs: int = 20
    """Maximum number of passes over the training items."""

    batch: int = 8
    """Items of a training step."""

    patience: int = 3
    """Epochs without lower validation loss before training stops."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "patience"):
            if getattr(self, name) < 1:
                raise BadInput(f"`{name}` must be at least 1, not {getattr(self, name)}")
        if not self.lr > 0:
            raise BadInput(f"`lr` must be above 0, not {self.lr:g}")


@dataclass(frozen=True, kw_only=True)
class SelectingOptions:
    """How neurons are selected on a data set."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)
    """Which neurons are selected."""

    data_options: DataOptions = field(default_factory=DataOptions)
    """Which items are used, and how they are read."""


@dataclass(frozen=True, kw_only=True)
class LocatingOptions:
    """How neurons are located, by any method."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)
    """Which neurons are selected."""

    method_options: MethodOptions = field(default_factory=MethodOptions)
    """Options of individual methods."""

    data_options: DataOptions = field(default_factory=DataOptions)
    """Which items are used, and how they are read."""


@dataclass(frozen=True, kw_only=True)
class TuningOptions:
    """How neurons are selected and trained."""

    training_options: TrainingOptions = field(default_factory=TrainingOptions)
    """How they are trained."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)
    """Which neurons are selected."""

    data_options: DataOptions = field(default_factory=DataOptions)
    """Which items are used, and how they are read."""


ItemRuleOptions = Annotated[RuleOptions, without("aggregate", "share")]
"""Neurons of single items."""

ItemSelectingOptions = Annotated[SelectingOptions, without("aggregate", "share")]
"""Neurons of single items of a data set."""

WordingSelectingOptions = Annotated[
    SelectingOptions, without("aggregate", "share", "fields", "items")
]
"""Neurons of single items, each in several wordings."""
