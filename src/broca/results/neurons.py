"""The results of the neuron verbs: `neurons.json`, and a file for every experiment."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import isnan
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from broca.results.base import Interval, ModelInfo, Result
from broca.results.files import plain, restored
from broca.results.pages.charts import Figure
from broca.results.pages.neurons import (
    experiment_tables,
    neuron_grid,
    neuron_table,
    overlap_figure,
)
from broca.results.pages.tables import Table
from broca.results.pages.template import filled

_SHOWN = 20
"""Number of neurons, and of rows of further tables, that a terminal shows."""


@dataclass(frozen=True)
class LocatedNeuron:
    """A selected neuron.

    Attributes:
        name: Name, such as `L3N40`.
        layer: Decoder layer, from 0.
        index: Number within the layer.
        score: Score by which it was selected.
        sigmas: The score in standard deviations above the mean of all neurons.
    """

    name: str
    layer: int
    index: int
    score: float
    sigmas: float


@dataclass(frozen=True, kw_only=True, repr=False)
class NeuronSet(Result, file="neurons.json", page="neurons.html", verb="broca neurons locate"):
    """The neurons that a data set has in common.

    Attributes:
        model: The model.
        task: The data set.
        capability: The capability that the data set measures.
        method: Method by which neurons were selected.
        settings: Settings of the method.
        items: Number of items that were scored.
        probability: Mean p(gold token) of these items; None if the method scores no items.
        residual: Mean completeness error of the integrated gradients; None if the method scores no
            items.
        selected: The neurons, highest score first.
        by_layer: Number of selected neurons in every layer.
        share_of_neurons: Share of the model's neurons that are selected.
        share_of_parameters: Share of the model's parameters that belong to selected neurons.
        notes: Notes for the reader.
    """

    kind: Literal["neuron set"] = "neuron set"
    model: ModelInfo
    task: str
    capability: str
    method: str
    settings: dict[str, Any]
    items: int
    probability: float | None
    residual: float | None
    selected: tuple[LocatedNeuron, ...]
    by_layer: dict[str, int]
    share_of_neurons: float
    share_of_parameters: float
    notes: tuple[str, ...] = ()

    def figures(self) -> tuple[Figure, ...]:
        """Returns its figure: the neurons within the model."""
        return (neuron_grid(self),)

    def page(self) -> str:
        """Renders the set."""
        return filled(
            "neurons", neuron_set=self, neurons=neuron_table(self),
            grid_figure=neuron_grid(self) if self.selected else None,
        )  # fmt: skip

    def terminal(self) -> Iterator[str | Table]:
        """Yields the size of the set, the first neurons, and how well the steps add up."""
        yield (
            f"{self.model.name}: {len(self.selected)} of {self.model.neurons} neurons "
            f"({self.share_of_neurons:.2%} of the neurons, {self.share_of_parameters:.3%} of the "
            f"parameters) stand out on {self.task} by {self.method}, {self.items} items."
        )
        yield neuron_table(self).pick("neuron|score|sigmas", _SHOWN)
        if len(self.selected) > _SHOWN:
            yield f"... and {len(self.selected) - _SHOWN} more"
        if self.residual is not None and not isnan(self.residual):
            yield f"p(answer) {self.probability:.3f}; error of the steps {self.residual:.4f}"
        yield from (f"note: {note}" for note in self.notes)

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each selected neuron."""
        columns = ("component", "layer", "index", "score", "sigmas")
        return [dict(zip(columns, astuple(neuron), strict=True)) for neuron in self.selected]


@dataclass(frozen=True)
class Agreement:
    """The overlap of the sets of pairs of items.

    Attributes:
        pairs: Relation of the pairs.
        of_larger: Common neurons as a share of the larger set.
        iou: Common neurons as a share of the union.
        random_of_larger: Mean `of_larger` of random sets of the same sizes.
        random_iou: Mean `iou` of random sets of the same sizes.
    """

    pairs: str
    of_larger: Interval
    iou: Interval
    random_of_larger: float
    random_iou: float


@dataclass(frozen=True)
class Fidelity:
    """The overlaps that show whether the wording or the content determines an item's neurons.

    Attributes:
        questions: The task.
        contents: Number of contents, each in several paraphrases.
        set_size: Mean number of neurons of an item.
        empty: Share of items without neurons; pairs of two such items are left out.
        agreements: Overlaps of paraphrases, of different items in the same wording, and of
            different items in different wordings.
    """

    questions: str
    contents: int
    set_size: float
    empty: float
    agreements: tuple[Agreement, ...]


@dataclass(frozen=True)
class Moved:
    """The change of p(answer) when located neurons are scaled.

    Attributes:
        factor: Factor of the activations.
        located: Change of p(answer) of the item of the neurons.
        random: Change with as many random neurons, mean over the draws.
        excess: `located` - `random`, paired by item.
        unrelated: Change of p(answer) of unrelated prompts with these neurons scaled; None without
            such prompts.
        relative: Mean change with located neurons divided by mean p(answer); None if that is 0.
        as_claimed: Share of items whose p(answer) decreases (factor below 1) or increases (above
            1).
    """

    factor: float
    located: Interval
    random: Interval
    excess: Interval
    unrelated: Interval | None
    relative: float | None
    as_claimed: float


@dataclass(frozen=True)
class Reliability:
    """The effect of scaling the located neurons of single items.

    Attributes:
        questions: The task.
        items: Number of items with at least one located neuron.
        empty: Number of items without located neurons, which are left out.
        set_size: Mean number of neurons of an item.
        probability: Mean p(answer) of the intact model.
        draws: Number of random sets for every item.
        moved: Changes for every factor.
    """

    questions: str
    items: int
    empty: int
    set_size: float
    probability: float
    draws: int
    moved: tuple[Moved, ...]


@dataclass(frozen=True)
class Decoupled:
    """The overlap of located sets over the pairs of one relation.

    Attributes:
        relation: Relation of the pairs.
        pairs: Number of pairs; pairs with two empty sets are left out.
        of_first: Common neurons as a share of the first item's neurons; None if no first item has
            neurons.
        of_second: The same of the second item.
        of_larger: Common neurons as a share of the larger set.
        iou: Common neurons as a share of the union.
        random_of_larger: Mean `of_larger` of random sets of the same sizes.
        random_iou: Mean `iou` of random sets of the same sizes.
    """

    relation: str
    pairs: int
    of_first: Interval | None
    of_second: Interval | None
    of_larger: Interval
    iou: Interval
    random_of_larger: float
    random_iou: float


@dataclass(frozen=True)
class Overlap:
    """The overlap of two sets; None if a set that is divided by is empty.

    Attributes:
        common: Number of neurons in both sets.
        of_first: Common neurons as a share of the first set.
        of_second: Common neurons as a share of the second set.
        of_larger: Common neurons as a share of the larger set.
        iou: Common neurons as a share of the union.
        expected_of_larger: Expected `of_larger` of two random sets of these sizes.
        expected_iou: Expected `iou` of two random sets of these sizes, to first order.
    """

    common: int
    of_first: float | None
    of_second: float | None
    of_larger: float | None
    iou: float | None
    expected_of_larger: float | None
    expected_iou: float | None


@dataclass(frozen=True)
class ComparedHalves:
    """The overlap of the located sets of two halves of tasks.

    Attributes:
        first: Name of one half.
        second: Name of the other.
        relation: `same data`, `same capability` or `other capability`.
        sizes: Number of neurons of each of the two sets.
        overlap: Overlap of the sets.
    """

    first: str
    second: str
    relation: str
    sizes: tuple[int, int]
    overlap: Overlap


@dataclass(frozen=True)
class Overlaps:
    """All pairs of halves, and their summary.

    Attributes:
        names: The tasks.
        pairs: Every pair of halves of different names; two halves of one task included.
        summary: Mean of each measure over pairs, by relation; None if no pair has the measure.
    """

    names: tuple[str, ...]
    pairs: tuple[ComparedHalves, ...]
    summary: dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Erased:
    """The drop of a task when a set is erased.

    Attributes:
        method: Method that selected the set.
        questions: The task.
        neurons: Number of erased neurons.
        before: Score of the intact model.
        after: Score with the set erased.
        drop: Loss of score, paired by item.
        random_drop: Loss of score with as many random neurons erased, paired by item, mean over the
            draws.
        random_drops: Loss of score of every draw.
        excess: `drop` - `random_drop`, paired by item.
        log_probability_drop: Loss of the gold answer in nats, paired by item.
    """

    method: str
    questions: str
    neurons: int
    before: Interval
    after: Interval
    drop: Interval
    random_drop: Interval
    random_drops: tuple[float, ...]
    excess: Interval
    log_probability_drop: Interval


@dataclass(frozen=True)
class Arm:
    """The training of a set of neurons, measured on a task.

    Attributes:
        arm: `untuned`, `located`, `without located`, or `random 1`, `random 2`, ...
        questions: The measured task.
        neurons: Number of trained neurons.
        share_of_neurons: Share of all neurons that are trained.
        share_of_parameters: Share of the model's parameters that are trained.
        score: Score on held-out items.
        change: Score minus the score of the untuned model, paired by item.
        log_probability_change: Change in nats of the gold answer from the untuned model, paired by
            item.
        best_epoch: The epoch whose weights were kept; 0 = untuned.
        losses: Validation loss before training and after every epoch; None where it is not finite.
    """

    arm: str
    questions: str
    neurons: int
    share_of_neurons: float
    share_of_parameters: float
    score: Interval
    change: Interval
    log_probability_change: Interval
    best_epoch: int
    losses: tuple[float | None, ...]


@dataclass(frozen=True)
class Crossed:
    """The effect on B of an action on the neurons of A.

    Attributes:
        action: `erase` or `tune`.
        located_on: Task A.
        measured_on: Task B.
        relation: `same data`, `same capability` or `other capability`.
        neurons: Number of located neurons.
        change: Change of B's score.
        random_change: Change of B's score with as many random neurons, mean over the draws.
        log_probability_change: Change in nats of B's gold answers.
    """

    action: str
    located_on: str
    measured_on: str
    relation: str
    neurons: int
    change: Interval
    random_change: float
    log_probability_change: Interval


EXPERIMENTS: dict[str, Any] = {
    "fidelity": Fidelity,
    "reliability": Reliability,
    "decouple": tuple[Decoupled, ...],
    "overlap": Overlaps,
    "erase": tuple[Erased, ...],
    "enhance": tuple[Arm, ...],
    "cross": tuple[Crossed, ...],
}
"""The type of the result of every experiment, by its verb."""

Shape = TypeVar("Shape")


@dataclass(frozen=True, kw_only=True, repr=False)
class NeuronExperiment(Result, Generic[Shape], verb="broca neurons"):
    """The result of any other neuron command.

    Attributes:
        command: The command.
        model: The model.
        settings: Settings of the experiment.
        result: `Fidelity`, `Reliability` or `Overlaps`, or the lines of `decouple` (`Decoupled`),
            `erase` (`Erased`), `enhance` (`Arm`) or `cross` (`Crossed`).
        notes: Notes for the reader.

    Raises:
        ValueError: The result has not the type of its command.
    """

    kind: Literal["neuron experiment"] = "neuron experiment"
    command: str
    model: ModelInfo
    settings: dict[str, Any]
    result: Shape
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Makes the data classes of a result from a file; what is not finite becomes None."""
        if self.verb not in EXPERIMENTS:
            raise ValueError(f"`{self.command}` is no experiment")
        result = restored(_with_none(plain(self.result)), EXPERIMENTS[self.verb])
        object.__setattr__(self, "result", result)

    @property
    def verb(self) -> str:
        """The verb of `broca.neurons` that made it, such as `erase`."""
        return self.command.rpartition(" ")[2]

    @property
    def file_name(self) -> str:
        """Name of its file, that of the verb."""
        return f"{self.verb}.json"

    def figures(self) -> tuple[Figure, ...]:
        """Returns the matrix of `overlap`; other experiments have no figure."""
        result: Any = self.result
        return (overlap_figure(result),) if self.verb == "overlap" else ()

    def page(self) -> str:
        """Renders the experiment."""
        return filled("experiment", experiment=self, tables=experiment_tables(self))

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns its page, with the name of the verb."""
        return {f"{self.verb}.html": self.page()}

    def terminal(self) -> Iterator[str | Table]:
        """Yields its tables, the first in the columns for which a terminal has room."""
        yield f"{self.command} of {self.model.name}"
        tables = experiment_tables(self)
        yield from (table.pick(_COLUMNS.get(self.verb, "")) for table in tables[:1])
        yield from (table.pick(most=_SHOWN) for table in tables[1:])
        yield from (f"note: {note}" for note in self.notes)

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each part of the result; the columns depend on the experiment."""
        result = plain(self.result)
        return result if isinstance(result, list) else [result]


_COLUMNS = {
    "decouple": "relation|pairs|of larger|iou|random of larger",
    "erase": "questions|method|neurons|drop|random drop|excess",
    "enhance": "arm|questions|neurons|share of parameters|score|change",
    "cross": "located on|measured on|relation|neurons|change|random change",
}
"""The columns of the first table that a terminal has room for, by the verb; all by default."""


def _with_none(data: Any) -> Any:
    """Replaces every interval of unknown numbers by None."""
    if isinstance(data, list):
        return [_with_none(part) for part in data]
    if not isinstance(data, dict):
        return data
    if data == {"value": None, "low": None, "high": None}:
        return None
    return {name: _with_none(part) for name, part in data.items()}
