"""The options of the verbs about neurons."""

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from broca.errors import BadInput
from broca.options.base import WHOLE, Count, Options, shown_as
from broca.options.running import NeuronRunOptions, PromptsRun
from broca.options.verbs import POSITION


@shown_as("Rule", "Which neurons are selected.", 3)
@dataclass(frozen=True, kw_only=True)
class RuleOptions(Options):
    """Which neurons are selected by their scores: an item's, or the mean of a data set's items."""

    steps: Annotated[Count, WHOLE] = 19
    """Steps of the integrated gradients."""

    sigma: float = 6.0
    """Standard deviations above the mean that a score must exceed."""

    count: Annotated[Count | None, WHOLE] = None
    """Select this many top-scoring neurons instead of using `sigma`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.sigma):
            raise BadInput(f"`sigma` must be a number, not {self.sigma}")


@dataclass(frozen=True, kw_only=True)
class SeedOptions(Options):
    """The random draws of a verb, and the tokens that it counts."""

    seed: Annotated[int, WHOLE] = 0
    """Seed of the item split, of all random draws and of the intervals."""

    answer_tokens: Annotated[Count | None, WHOLE] = None
    """Count only this many first tokens of an answer (data: sets)."""


@dataclass(frozen=True, kw_only=True)
class DataOptions(SeedOptions):
    """How many items of the data sets are used, and how they are read and split."""

    items: Annotated[Count, WHOLE] = 100
    """Maximum number of items of each task to locate and train on, and of validation items."""

    fields: str = ""
    """Columns of a data: set, prompt=COLUMN,answer=COLUMN."""

    def __post_init__(self) -> None:
        super().__post_init__()
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


@shown_as("Training", "How neurons are trained.", 3)
@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """How neurons are trained."""

    lr: Annotated[float, Meta(gt=0)] = 1e-5
    """Learning rate of Adam."""

    epochs: Annotated[Count, WHOLE] = 20
    """Maximum number of passes over the training items."""

    batch: Annotated[Count, WHOLE] = 8
    """Items of a training step."""

    patience: Annotated[Count, WHOLE] = 3
    """Epochs without lower validation loss before training stops."""


@dataclass(frozen=True, kw_only=True)
class DrawOptions(Options):
    """The random sets that located neurons are compared with."""

    draws: Annotated[Count, WHOLE] = 5
    """Number of random sets to compare with each located set."""

    matching: Literal["size", "layer"] = "size"
    """Random sets match the size, or the number in every layer."""


@dataclass(frozen=True)
class _OfModel(Options):
    """What every verb about neurons has."""

    model: Annotated[Any, POSITION]
    """reference, reference-small, planted, smollm2, a model folder, a GGUF file or a hub id."""


@dataclass(frozen=True)
class _OnTask(_OfModel):
    """What the verbs about one task have."""

    _: KW_ONLY

    task: Any
    """A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines file)."""

    data_options: DataOptions = field(default_factory=DataOptions)
    run_options: NeuronRunOptions = field(default_factory=NeuronRunOptions)


@dataclass(frozen=True)
class _OnTasks(_OfModel):
    """What the verbs about several tasks have."""

    _: KW_ONLY

    tasks: Any = "auto"
    """Data sets, T1,T2,..., or auto: all shipped tasks."""

    data_options: DataOptions = field(default_factory=DataOptions)
    run_options: NeuronRunOptions = field(default_factory=NeuronRunOptions)


@dataclass(frozen=True)
class LocateOptions(_OnTask):
    """Locate the neurons that a data set has in common."""

    _: KW_ONLY

    method: str = "cnl"
    """{neuron_methods}."""

    others: Any = "auto"
    """Tasks that a method such as activation compares with: T1,T2, auto, or nothing."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)


@dataclass(frozen=True)
class EraseOptions(_OnTask):
    """Erase located neurons, and as many random ones, on held-out items of all tasks."""

    _: KW_ONLY

    methods: Any = "cnl"
    """Methods to compare, joined by commas, with sets of the first method's size:
    {neuron_methods}."""

    others: Any = "auto"
    """Other data sets to measure on: T1,T2, auto, or nothing."""

    factor: float = 0.0
    """Factor of the neurons' activations; 0 erases."""

    report_items: Annotated[Count, WHOLE] = 100
    """Maximum number of items of each task to measure on."""

    draw_options: DrawOptions = field(default_factory=DrawOptions)
    rule_options: RuleOptions = field(default_factory=RuleOptions)


@dataclass(frozen=True)
class EnhanceOptions(_OnTask):
    """Train only located neurons, only others, or random ones; measure on held-out items."""

    _: KW_ONLY

    method: str = "cnl"
    """{neuron_methods}."""

    others: Any = ""
    """Other data sets to measure on: T1,T2, auto, or nothing."""

    without: Literal["zeroed", "frozen"] = "zeroed"
    """State of the located neurons while all others are trained: zeroed or frozen."""

    report_items: Annotated[Count, WHOLE] = 300
    """Maximum number of items of each task to measure on."""

    draw_options: DrawOptions = field(default_factory=lambda: DrawOptions(draws=3))
    rule_options: RuleOptions = field(default_factory=RuleOptions)
    training_options: TrainingOptions = field(default_factory=TrainingOptions)


@dataclass(frozen=True)
class CrossOptions(_OnTasks):
    """Locate on one data set, erase or train there, and measure on every other."""

    _: KW_ONLY

    action: Literal["erase", "tune"] = "erase"
    """What to do with the located neurons: erase or tune."""

    method: str = "cnl"
    """{neuron_methods}."""

    report_items: Annotated[Count, WHOLE] = 100
    """Maximum number of items of each task to measure on."""

    draw_options: DrawOptions = field(default_factory=lambda: DrawOptions(draws=3))
    rule_options: RuleOptions = field(default_factory=RuleOptions)
    training_options: TrainingOptions = field(default_factory=TrainingOptions)


@dataclass(frozen=True)
class OverlapOptions(_OnTasks):
    """Do two halves of a data set, or two data sets, share neurons? Draws a figure."""

    _: KW_ONLY

    rule_options: RuleOptions = field(default_factory=RuleOptions)


@dataclass(frozen=True)
class ReliabilityOptions(_OnTask):
    """Do an item's neurons change p(answer), down when suppressed and up when amplified?"""

    _: KW_ONLY

    others: Any = "auto"
    """Tasks of other capabilities, which should not change: T1,T2, auto, or nothing."""

    factors: Any = "0,2"
    """Factors of the located neurons' activations, joined by commas."""

    draw_options: DrawOptions = field(default_factory=DrawOptions)
    rule_options: RuleOptions = field(default_factory=RuleOptions)


@dataclass(frozen=True)
class DecoupleOptions(_OfModel):
    """Do items share neurons because of their capability, or because of their content?"""

    _: KW_ONLY

    pairs: str | None = None
    """JSON lines with relation, first and second (prompt, answer); default: shipped pairs."""

    items: Annotated[Count, WHOLE] = 60
    """Number of shipped pairs of every relation."""

    seed: Annotated[int, WHOLE] = 0
    """Seed of the shipped pairs and the intervals."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)
    run_options: PromptsRun = field(default_factory=PromptsRun)


@dataclass(frozen=True)
class FidelityOptions(_OfModel):
    """Do paraphrases of an item have the same neurons?"""

    _: KW_ONLY

    task: Any
    """A shipped task with paraphrases (addition, capitals, mc_biology, mc_chemistry), or data:NAME
    whose rows have paraphrases: counterfact, or JSON lines with prompt, answer and paraphrases."""

    contents: Annotated[Count, WHOLE] = 50
    """Maximum number of items, each in several paraphrases."""

    wordings: Annotated[Count, WHOLE] = 4
    """Maximum number of paraphrases of an item."""

    rule_options: RuleOptions = field(default_factory=RuleOptions)
    data_options: SeedOptions = field(default_factory=SeedOptions)
    run_options: PromptsRun = field(default_factory=PromptsRun)
