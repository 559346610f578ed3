"""The results of the neuron verbs, `neurons.json` and `erase.json`, with tables and a figure."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any, Literal

from broca.results.base import Interval, ModelInfo, Result
from broca.results.files import plain
from broca.results.pages.charts import Figure
from broca.results.pages.grid import ComponentGrid
from broca.results.pages.tables import Column, Table, component, fixed
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
            items, or by a single gradient.
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
        if self.residual is not None:
            yield f"p(answer) {self.probability:.3f}; error of the steps {self.residual:.4f}"
        yield from (f"note: {note}" for note in self.notes)

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each selected neuron."""
        columns = ("component", "layer", "index", "score", "sigmas")
        return [dict(zip(columns, astuple(neuron), strict=True)) for neuron in self.selected]


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


class Erasure(Result, file="erase.json", page="erase.html", verb="broca neurons erase"):
    """The drops of tasks when located neurons are erased, beside those of random ones.

    Attributes:
        command: The command.
        model: The model.
        settings: Settings of the command, and the erased neurons of every method.
        result: A line for each task and method.
        notes: Notes for the reader.
    """

    kind: Literal["neuron erasure"] = "neuron erasure"
    command: str = "broca neurons erase"
    model: ModelInfo
    settings: dict[str, Any]
    result: tuple[Erased, ...]
    notes: tuple[str, ...] = ()

    def page(self) -> str:
        """Renders the drops."""
        return filled("erasure", erasure=self, drops=erasure_table(self))

    def terminal(self) -> Iterator[str | Table]:
        """Yields the drops in the columns for which a terminal has room."""
        yield f"{self.command} of {self.model.name}"
        yield erasure_table(self).pick("questions|method|neurons|drop|random drop|excess")
        yield from (f"note: {note}" for note in self.notes)

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each task and method."""
        lines: list[dict[str, Any]] = plain(self.result)
        return lines


def neuron_grid(neuron_set: NeuronSet) -> Figure:
    """Draws the selected neurons within their layers, with the scores as colours."""
    scores = {neuron.name: -neuron.score for neuron in neuron_set.selected}
    legend = f"score of {neuron_set.method}, shown as a loss"
    grid = ComponentGrid(scores, legend, model=neuron_set.model)
    caption = "Each stroke is a selected neuron at its position within its layer."
    return Figure("components", caption, grid)


def neuron_table(neuron_set: NeuronSet) -> Table:
    """Returns the table of selected neurons, the highest score first."""
    return Table.of(
        "neurons", "Selected neurons, highest score first", neuron_set.selected,
        component("name", "neuron"), Column("layer"), Column("index"), Column("score"),
        Column("sigmas", show=fixed(1)),
    )  # fmt: skip


def erasure_table(erasure: Erasure) -> Table:
    """Returns the table of drops, a row for each task and method."""
    columns = (
        "method", "questions", "neurons", "before", "after", "drop", "random drop", "random drops",
        "excess", "log probability drop",
    )  # fmt: skip
    return Table.of("result", "Score lost on held-out items", erasure.result, *map(Column, columns))
