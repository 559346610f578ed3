"""The options of the neuron verbs: single ones, and groups that several verbs take together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from broca.cli.model_options import AllowPickle, Device, DType
from broca.cli.run_options import Plain, Seed
from broca.cli.task_options import IncludePath
from broca.errors import BadInput

if TYPE_CHECKING:
    from broca.neurons import TuningOptions

Task = Annotated[
    str,
    typer.Option(
        help="A task (shipped, own or lm-eval's), or data:NAME (a hub id, folder or JSON-lines "
        "file)."
    ),
]
Tasks = Annotated[str, typer.Option(help="Data sets, T1,T2,..., or auto: all shipped tasks.")]
Others = Annotated[
    str, typer.Option(help="Data sets to measure on besides: T1,T2, auto, or nothing.")
]
MethodName = Annotated[
    str, typer.Option(help="cnl, knowledge-neurons, activation, gradient, random or sensing.")
]
Items = Annotated[int, typer.Option(help="Most items to locate on.")]
ReportItems = Annotated[int, typer.Option(help="Most items to measure on.")]
Draws = Annotated[int, typer.Option(help="Random sets to compare each located set with.")]
Matching = Annotated[
    str, typer.Option(help="Random sets match the size, or the number in every layer.")
]
AnswerTokens = Annotated[
    int | None, typer.Option(help="Of data: sets, only the first so many answer tokens count.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Steps = Annotated[int, typer.Option(help="Steps S of the integrated gradients.")]
Sigma = Annotated[float, typer.Option(help="Standard deviations above the mean to exceed.")]
Scope = Annotated[str, typer.Option(help="Mean and deviation over all neurons: global, or layer.")]
Aggregate = Annotated[str, typer.Option(help="mean of the items' scores, or vote of their sets.")]
Share = Annotated[float, typer.Option(help="With vote: least share of items for a neuron.")]
Count = Annotated[
    int | None, typer.Option(help="Take the so many best neurons instead of those beyond sigma.")
]


class Group(Protocol):
    """Options of which some are settings of a session."""

    def settings(self) -> dict[str, Any]:
        """The arguments of `opened` that they decide."""


@dataclass(frozen=True)
class ItemRuleOptions:
    """Which neurons stand out on a single item."""

    steps: Steps = 19
    sigma: Sigma = 6.0
    scope: Scope = "global"
    count: Count = None

    def settings(self) -> dict[str, Any]:
        """The arguments of `opened` that they decide."""
        from broca.neurons import Rule

        rule = Rule(self.sigma, self.scope, count=self.count)  # type: ignore[arg-type]  # it checks
        return {"rule": rule, "steps": self.steps}


@dataclass(frozen=True)
class RuleOptions:
    """Which neurons stand out on a data set."""

    steps: Steps = 19
    sigma: Sigma = 6.0
    scope: Scope = "global"
    aggregate: Aggregate = "mean"
    share: Share = 0.5
    count: Count = None

    def settings(self) -> dict[str, Any]:
        """The arguments of `opened` that they decide."""
        from broca.neurons import Rule

        rule = Rule(  # checks its arguments
            self.sigma,
            self.scope,  # type: ignore[arg-type]
            self.aggregate,  # type: ignore[arg-type]
            self.share,
            self.count,
        )
        return {"rule": rule, "steps": self.steps}


@dataclass(frozen=True)
class MethodOptions:
    """What single methods of locating need."""

    threshold: Annotated[
        float, typer.Option(help="Knowledge neurons: share of an item's highest score to exceed.")
    ] = 0.2
    knowledge_share: Annotated[
        float, typer.Option(help="Knowledge neurons: share of items that must hold a neuron.")
    ] = 0.4
    search: Annotated[
        str,
        typer.Option(help="How sensing searches: masked-gradient, or a search as for heads."),
    ] = "masked-gradient"
    rows: Annotated[
        int | None,
        typer.Option(help="Rows of sensing; default: what costs as much as integrated gradients."),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The arguments of `opened` that they decide."""
        from broca.neurons import SensingOptions

        return {
            "threshold": self.threshold,
            "knowledge_share": self.knowledge_share,
            "sensing": SensingOptions(self.search, self.rows),
        }


@dataclass(frozen=True)
class DataOptions:
    """How data sets are found and read."""

    answer_tokens: AnswerTokens = None
    fields: Annotated[
        str, typer.Option(help="Of data: sets, the columns: prompt=COLUMN,answer=COLUMN.")
    ] = ""
    include_path: IncludePath = None

    def settings(self) -> dict[str, Any]:
        """The arguments of `opened` that they decide.

        Raises:
            BadInput: `fields` does not name columns.
        """
        pairs = [part.partition("=") for part in self.fields.split(",") if part.strip()]
        if any(not equals or not value.strip() for _, equals, value in pairs):
            raise BadInput(
                f"--fields '{self.fields}' is not of the form prompt=COLUMN,answer=COLUMN"
            )
        columns = {name.strip(): value.strip() for name, _, value in pairs}
        return {
            "answer_tokens": self.answer_tokens,
            "fields": columns,
            "include_path": self.include_path,
        }


@dataclass(frozen=True)
class TrainingOptions:
    """How neurons are trained."""

    lr: Annotated[float, typer.Option(help="Learning rate of Adam.")] = 1e-5
    epochs: Annotated[int, typer.Option(help="Most passes over the training items.")] = 20
    batch: Annotated[int, typer.Option(help="Items of a training step.")] = 8
    patience: Annotated[
        int, typer.Option(help="Epochs without lower validation loss before stopping.")
    ] = 3

    def tuning(self) -> TuningOptions:
        """The same for `broca.neurons`, checked."""
        from broca.neurons import TuningOptions

        return TuningOptions(self.lr, self.epochs, self.batch, self.patience)


@dataclass(frozen=True)
class RunOptions:
    """Where and how a verb runs, writes and prints."""

    seed: Seed = 0
    out: Annotated[str, typer.Option(help="Folder for results; item scores there are reused.")] = (
        "broca-neurons"
    )
    dtype: DType = "auto"
    device: Device = None
    allow_pickle: AllowPickle = False
    json: Json = False
    plain: Plain = False


def matched(text: str) -> Any:
    """What `--matching` says, for `broca.neurons`.

    Raises:
        BadInput: It is neither size nor layer.
    """
    if text not in ("size", "layer"):
        raise BadInput(f"--matching '{text}' is unknown: use size or layer")
    return text
