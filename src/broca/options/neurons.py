"""The options of the verbs about neurons."""

from dataclasses import field
from typing import Annotated, Literal

from msgspec import Meta

from broca.errors import BadInput
from broca.options.base import WHOLE, Count, Names, Options, Seed, shown_as
from broca.options.running import LocateRun, NeuronRunOptions
from broca.options.verbs import OnModel


@shown_as("Rule", "Which neurons are selected.", 3)
class RuleOptions(Options):
    """Which neurons are selected by their scores: an item's, or the mean of a data set's items."""

    steps: Annotated[Count, WHOLE] = 19
    """Steps of the integrated gradients."""

    sigma: Annotated[float, Meta(ge=-1e9, le=1e9)] = 6.0
    """Standard deviations above the mean that a score must exceed."""

    count: Annotated[Count | None, WHOLE] = None
    """Select this many top-scoring neurons instead of using `sigma`."""


class DataOptions(Options):
    """How many items of the data sets are used, and how they are read and split."""

    seed: Annotated[Seed, WHOLE] = 0
    """Seed of the item split, of all random draws and of the intervals."""

    answer_tokens: Annotated[Count | None, WHOLE] = None
    """Count only this many first tokens of an answer (data: sets)."""

    items: Annotated[Count, WHOLE] = 100
    """Maximum number of items of each task to locate on."""

    fields: str = ""
    """Columns of a data: set, prompt=COLUMN,answer=COLUMN."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(map(all, self.columns.items())):
            raise BadInput(
                f"`fields` '{self.fields}' is not of the form prompt=COLUMN,answer=COLUMN"
            )

    @property
    def columns(self) -> dict[str, str]:
        """The columns by what they hold: `prompt` and `answer`."""
        parts = [part.partition("=") for part in self.fields.split(",") if part.strip()]
        return {name.strip(): column.strip() for name, _, column in parts}


class DrawOptions(Options):
    """The random sets that located neurons are compared with."""

    draws: Annotated[Count, WHOLE] = 5
    """Number of random sets to compare with each located set."""

    matching: Literal["size", "layer"] = "size"
    """Random sets match the size, or the number in every layer."""


class _OnTask(OnModel):
    """What every verb about neurons has."""

    task: Names
    """A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines file)."""

    data_options: DataOptions = field(default_factory=DataOptions)
    run_options: NeuronRunOptions = field(default_factory=NeuronRunOptions)


class LocateOptions(_OnTask):
    """Locate the neurons that a data set has in common."""

    method: str = "cnl"
    """{neuron_methods}."""

    others: Names = "auto"
    """Tasks that a method such as activation compares with: T1,T2, auto, or nothing."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)
    run_options: LocateRun = field(default_factory=LocateRun)


class EraseOptions(_OnTask):
    """Erase located neurons, and as many random ones, on held-out items of all tasks."""

    methods: Names = "cnl"
    """Methods to compare, joined by commas, with sets of the first method's size:
    {neuron_methods}."""

    others: Names = "auto"
    """Other data sets to measure on: T1,T2, auto, or nothing."""

    factor: Annotated[float, Meta(ge=-1e9, le=1e9)] = 0.0
    """Factor of the neurons' activations; 0 erases."""

    report_items: Annotated[Count, WHOLE] = 100
    """Maximum number of items of each task to measure on."""

    draw_options: DrawOptions = field(default_factory=DrawOptions)
    rule_options: RuleOptions = field(default_factory=RuleOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor == 1:
            raise BadInput("`factor` must be a number other than 1, which changes nothing")
