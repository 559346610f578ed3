"""Frozen option classes: the sentence under a field is its help, in Python and in a shell.

A verb takes the classes as parameters `..._options` and is decorated with `takes_options`; its
callers give a class as a whole, or any field as a keyword of its own. A class may consist of other
classes, as `RunOptions` does: each of these is a group of keywords too.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from broca.errors import BadInput, nearest

Reference = Callable[[Any], "str | Sequence[str] | None"]
"""A function of a document that returns a right answer in full, or the right answer followed by
wrong ones to compare it with, or None to leave the item out of the margin."""

NEW_TOKENS = "max_gen_toks"
"""lm-eval's name of the longest generation in tokens."""

LENGTH_NAMES = (NEW_TOKENS, "max_new_tokens", "max_tokens", "max_completion_tokens")
"""All names that lm-eval accepts for it."""

Switch = Literal["auto", "on", "off"]
"""`auto` lets the planner decide by the work that is saved."""

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Environment variables that keep the hub libraries off the network; each is read once."""

RESPONSES = ("accuracy", "margin", "probability")
"""The responses that a row can have."""

_RECORDS = {
    "components": ("models/choosing.py", "ComponentKind"),
    "ablations": ("engine/ablation.py", "AblationKind"),
    "executors": ("executors/*.py", "ExecutorKind"),
    "trackers": ("integrations/tracking.py", "TrackerKind"),
}
"""The files and the class of the records that placeholders such as `{ablations}` stand for."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How a model is loaded; a model that is already loaded ignores it."""

    components: str = "heads"
    """What can be ablated: {components}, joined by +."""

    revision: str | None = None
    """Branch, tag or commit of a model on the hub."""

    dtype: str = "auto"
    """Number format of the weights: float32, bfloat16, float16, stored (as in the files)
    or auto (float32 on a CPU)."""

    device: str | None = None
    """Device, such as cpu or cuda:0; default: the fastest one."""

    device_map: str | None = None
    """auto spreads the model over all devices."""

    allow_pickle: bool = False
    """Load weights in pickle format (tensors only)."""

    trust_remote_code: bool = False
    """Run the model's own Python files if transformers has no class for it."""

    merge_adapter: bool = True
    """Merge a PEFT adapter into the weights of its base model instead of running it beside them."""


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Where tasks come from, and whether they may execute code."""

    include_path: str | Path | None = None
    """A folder of lm-eval YAML tasks to add."""

    allow_code: bool = False
    """Let tasks execute what the model writes, in a sandbox (docs/sandbox.md)."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """How tasks are prompted and scored; the tasks' own files define everything else.

    Raises:
        BadInput: A value that does not exist.
    """

    metric: str | None = None
    """Metric of the localized task, NAME or NAME,FILTER as lm-eval writes it, such as
    exact_match,flexible-extract; default: acc_norm where the task has it, else its first."""

    num_fewshot: int | None = None
    """Solved examples before each question; default: what the task says. A task that fixes 0 is
    asked without examples, as in lm-eval."""

    limit: float | None = None
    """Number of documents of each task to use, from the first; below 1, a share of them."""

    chat_template: bool = False
    """Write prompts in the tokenizer's chat template."""

    system_prompt: str | None = None
    """Text before every prompt; the system message in a chat template."""

    fewshot_as_multiturn: bool = True
    """With a chat template, give the solved examples as turns, not all in one message."""

    locate_split: str | None = None
    """Official split (train, validation or its own name) that the locate and confirm
    items come from; the report items are then all documents that the task is scored on."""

    gen_kwargs: str | Mapping[str, Any] | None = None
    """Settings of generations that replace the tasks' own, NAME=VALUE joined by commas or JSON:
    max_gen_toks and until, such as max_gen_toks=64. Decoding is always greedy."""

    reference: str | Reference = "own"
    """Answer whose probability is the margin of a generation: own (the intact model's, where it
    is right), gold (the task's target) or FILE.py:FUNCTION; in Python also a function."""

    def __post_init__(self) -> None:
        if self.num_fewshot is not None and self.num_fewshot < 0:
            raise BadInput(f"`num_fewshot` must be 0 or more, not {self.num_fewshot}")
        if self.limit is not None and not (0 < self.limit < 1 or self.limit == int(self.limit) > 0):
            raise BadInput(
                f"`limit` must be a number of documents or a share below 1, not {self.limit:g}"
            )
        if self.metric is not None and not self.metric.strip():
            raise BadInput("`metric` is empty: give NAME or NAME,FILTER")
        if self.gen_kwargs is not None:
            settings = _generation(self.gen_kwargs)
            written = json.dumps(settings, sort_keys=True) if settings else None
            object.__setattr__(self, "gen_kwargs", written)
        if isinstance(self.reference, str) and not (
            self.reference in ("own", "gold") or ":" in self.reference
        ):
            raise BadInput(
                f"`reference` '{self.reference}' is unknown"
                f"{nearest(self.reference, ('own', 'gold'))}: use own, gold or FILE.py:FUNCTION"
            )

    @property
    def generation(self) -> dict[str, Any]:
        """The settings of `gen_kwargs`: `max_gen_toks`, a number, and `until`, a list of texts."""
        return {} if self.gen_kwargs is None else _generation(self.gen_kwargs)

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from the defaults, for `result.json`."""
        defaults = asdict(TaskOptions())
        values = {name: getattr(self, name) for name in defaults}
        if not isinstance(self.reference, str):
            function = self.reference
            values["reference"] = f"{function.__module__}:{function.__qualname__}"
        return {name: value for name, value in values.items() if value != defaults[name]}


def _generation(gen_kwargs: str | Mapping[str, Any]) -> dict[str, Any]:
    """Reads settings of generations; all of lm-eval's names of the length become `max_gen_toks`.

    Raises:
        BadInput: The settings cannot be read, or one is unknown or requests sampling.
    """
    settings: dict[str, Any] = {}
    for name, value in _named_values(gen_kwargs):
        if name in LENGTH_NAMES:
            name = NEW_TOKENS
            if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
                raise BadInput(f"`gen_kwargs`: {name} must be a number of tokens, not {value!r}")
            settings[name] = int(value)
        elif name == "until":
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list | tuple) or not all(
                isinstance(text, str) for text in texts
            ):
                raise BadInput(
                    f"`gen_kwargs`: until must be a text or a list of texts, not {value!r}"
                )
            settings[name] = list(texts)
        elif name in ("do_sample", "temperature"):
            if str(value).lower() not in ("false", "0", "0.0"):
                raise BadInput(
                    f"`gen_kwargs`: {name}={value} requests sampling: broca decodes greedily, so "
                    "that equal inputs give equal outputs; leave it out"
                )
        else:
            accepted = (NEW_TOKENS, "until", *LENGTH_NAMES)
            raise BadInput(
                f"`gen_kwargs`: '{name}' is unknown{nearest(name, accepted)}; use {NEW_TOKENS} and "
                "until"
            )
    return settings


def _named_values(gen_kwargs: str | Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values of a mapping, of JSON, or of NAME=VALUE pairs joined by commas."""
    if isinstance(gen_kwargs, str) and gen_kwargs.lstrip().startswith("{"):
        try:
            gen_kwargs = json.loads(gen_kwargs)
        except ValueError as error:
            raise BadInput(f"`gen_kwargs` '{gen_kwargs}' is not JSON: {error}") from error
    if isinstance(gen_kwargs, Mapping):
        return list(gen_kwargs.items())
    pairs = [pair.partition("=") for pair in gen_kwargs.split(",") if pair.strip()]
    for name, separator, _ in pairs:
        if not separator or not name.strip():
            raise BadInput(
                f"`gen_kwargs` '{gen_kwargs}' is not of the form NAME=VALUE,NAME=VALUE; a text "
                'with a comma needs JSON, {"until": ["a,b"]}'
            )
    return [
        (name.strip(), value if name.strip() == "until" else value.strip())
        for name, _, value in pairs
    ]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a search works, and how much it may measure.

    Raises:
        BadInput: A value that does not exist.
    """

    method: str | None = None
    """Search method; default: pooled, or cs-stratified where a recovery is given."""

    rows: int | None = None
    """Maximum number of (mask, item) rows of the search; default: what the method needs."""

    max_minutes: float | None = None
    """Maximum minutes for measuring the rows of the search; some rows are timed first."""

    k: int = 5
    """Maximum number of heads to select."""

    items: int = 100
    """Maximum number of items to search on."""

    response: str | None = None
    """Response that the search measures: accuracy (the task's metric), margin or probability;
    default: the method's choice. Verification always uses the task's metric."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method, such as recovery=NAME; in Python also a scikit-learn regressor."""

    def __post_init__(self) -> None:
        if self.response is not None and self.response not in RESPONSES:
            raise BadInput(
                f"`response` '{self.response}' is unknown{nearest(self.response, RESPONSES)}: use "
                "accuracy, margin or probability"
            )
        for name, value in (("k", self.k), ("rows", self.rows), ("items", self.items)):
            if value is not None and value < 1:
                raise BadInput(f"`{name}` must be at least 1, not {value}")
        if self.max_minutes is not None and not 0 < self.max_minutes < float("inf"):
            raise BadInput(f"`max_minutes` must be more than 0, not {self.max_minutes}")


@dataclass(frozen=True, kw_only=True)
class AblationOptions:
    """What an ablated component is replaced by."""

    ablation: str = "zero"
    """Kind of ablation: {ablations}."""

    scale: float = 0.0
    """Gate of an ablated component; 0 ablates, other values scale."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How the engine runs; these options affect speed and memory, not results.

    Raises:
        BadInput: A value that does not exist.
    """

    token_budget: int | None = None
    """Maximum number of tokens of a batch, padding included; default: derived from the free
    memory."""

    share_prefixes: Switch = "auto"
    """Read a prompt prefix once for all rows that share it and their mask: auto, on or
    off."""

    reuse_layers: Switch = "auto"
    """Read the layers below the first ablated one once for all masks of an item: auto, on or
    off."""

    compact: bool = True
    """Replace finished generations in a batch with new rows."""

    lanes: int | None = None
    """Copies of the model that run in parallel and share their weights; default: one for each
    thread if the model is small and on a CPU, else one."""

    def __post_init__(self) -> None:
        for name, switch in (
            ("share_prefixes", self.share_prefixes),
            ("reuse_layers", self.reuse_layers),
        ):
            if switch not in get_args(Switch):
                raise BadInput(
                    f"`{name}` '{switch}' is unknown{nearest(switch, get_args(Switch))}: use auto, "
                    "on or off"
                )
        for name, number in (("token_budget", self.token_budget), ("lanes", self.lanes)):
            if number is not None and number < 1:
                raise BadInput(f"`{name}` must be at least 1, not {number}")


def require_workers(workers: int | None, gpus_per_worker: float | None) -> None:
    """Refuses a number of workers, or of GPUs per worker, that is out of range."""
    if workers is not None and workers < 1:
        raise BadInput(f"`workers` must be at least 1, not {workers}")
    gpus = gpus_per_worker
    if gpus is not None and not (0 <= gpus < 1 or gpus == int(gpus)):
        raise BadInput(f"`gpus_per_worker` must be a whole number or less than 1, not {gpus:g}")


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """Where rows are measured.

    Raises:
        BadInput: A number out of range.
    """

    executor: str | object = "local"
    """Where rows are measured (docs/scale.md): {executors}; in Python also settings of an executor,
    such as broca.executors.RayOptions(workers=8)."""

    address: str | None = None
    """Address of a running Ray cluster, or auto; default: start a cluster on this machine."""

    workers: int | None = None
    """Number of Ray workers; default: as many as the cluster can hold."""

    gpus_per_worker: float | None = None
    """GPUs of each Ray worker; a large model is spread over several."""

    batch_limit: float = 1800.0
    """Seconds of a batch after which a Ray worker counts as hung."""

    def __post_init__(self) -> None:
        require_workers(self.workers, self.gpus_per_worker)
        if not self.batch_limit > 0:
            raise BadInput(f"`batch_limit` must be above 0, not {self.batch_limit:g}")


@dataclass(frozen=True, kw_only=True)
class JournalOptions:
    """Where measured rows are kept.

    Raises:
        BadInput: A share out of range.
    """

    journal: str | Path | None = None
    """A journal to share between runs; default: the out folder's journal, or memory without a
    folder."""

    keep_outputs: float = 0.0
    """Share of the rows whose raw output the journal keeps."""

    def __post_init__(self) -> None:
        if not 0 <= self.keep_outputs <= 1:
            raise BadInput(f"`keep_outputs` must lie between 0 and 1, not at {self.keep_outputs:g}")


@dataclass(frozen=True, kw_only=True)
class ProgressOptions:
    """How a verb reports its progress to Python."""

    on_progress: Callable[..., None] | None = None
    """Receives the current stage and the progress of the run."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of every verb that measures, group by group."""

    source_options: SourceOptions = field(default_factory=SourceOptions)
    """Where tasks come from."""

    task_options: TaskOptions = field(default_factory=TaskOptions)
    """How tasks are asked and scored."""

    ablation_options: AblationOptions = field(default_factory=AblationOptions)
    """What ablated components are replaced by."""

    model_options: ModelOptions = field(default_factory=ModelOptions)
    """How the model is loaded."""

    engine_options: EngineOptions = field(default_factory=EngineOptions)
    """How the engine runs."""

    executor_options: ExecutorOptions = field(default_factory=ExecutorOptions)
    """Where rows are measured."""

    journal_options: JournalOptions = field(default_factory=JournalOptions)
    """Where measured rows are kept."""

    progress_options: ProgressOptions = field(default_factory=ProgressOptions)
    """How the verb reports its progress to Python."""

    @property
    def on_progress(self) -> Callable[..., None] | None:
        """Receives the current stage and the progress of the run."""
        return self.progress_options.on_progress

    def unreported(self) -> RunOptions:
        """Returns the options for a call within the verb, whose progress is reported elsewhere."""
        return replace(self, progress_options=ProgressOptions())

    def within(self, workspace: Any) -> RunOptions:
        """Returns the options for a call within the verb that measures in an open workspace."""
        journal_options = replace(self.journal_options, journal=workspace)
        return replace(self.unreported(), journal_options=journal_options)


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


def parts_of(options: Any) -> list[Any]:
    """Returns the option classes within an option class, or the class itself if it has none."""
    names = [part.name for part in fields(options) if part.name.endswith("_options")]
    return [getattr(options, name) for name in names] or [options]


@dataclass(frozen=True)
class _Without:
    names: tuple[str, ...]


def without(*names: str) -> _Without:
    """Excludes fields of an option class, or whole classes of it, from the keywords of a verb.

    Use it in an annotation, such as `Annotated[TaskOptions, without("limit")]`. Callers of the verb
    can set these fields only in an instance of the class.
    """
    return _Without(names)


@dataclass(frozen=True)
class Group:
    """An option class that a verb takes.

    Attributes:
        parameter: Its keyword.
        cls: The option class.
        fields: Its fields that are keywords of the verb.
        container: The verb's parameter that contains it; it may be the group itself.
    """

    parameter: str
    cls: type[Any]
    fields: tuple[Field[Any], ...]
    container: str


StressRunOptions = Annotated[
    RunOptions,
    without("source_options", "task_options", "ablation_options", "engine_options"),
    without("components", "keep_outputs"),
]
"""A stress test has its own prompts and measures heads only."""

CompareRunOptions = Annotated[RunOptions, without("limit", "metric", "ablation", "revision")]
"""Models are compared under zero ablation or a scale, each at its own revision."""

MethodsRunOptions = Annotated[RunOptions, without("ablation_options", "components")]
"""Methods are compared on heads."""

PaperRunOptions = Annotated[RunOptions, without("task_options", "ablation_options", "components")]
"""The paper fixes how tasks are asked and what is ablated."""

NeuronRunOptions = Annotated[RunOptions, without("ablation_options", "reference", "components")]
"""Neurons are the components, and the right answers are the reference."""

ExampleRunOptions = Annotated[
    RunOptions, without("source_options", "task_options", "ablation_options", "components")
]
"""Neurons on examples that belong to no task."""

ItemRuleOptions = Annotated[RuleOptions, without("aggregate", "share")]
"""Neurons of single items."""

ItemSelectingOptions = Annotated[SelectingOptions, without("aggregate", "share")]
"""Neurons of single items of a data set."""

WordingSelectingOptions = Annotated[
    SelectingOptions, without("aggregate", "share", "fields", "items")
]
"""Neurons of single items, each in several wordings."""

R = TypeVar("R")


def takes_options(verb: Callable[..., R]) -> Callable[..., R]:
    """Lets the callers of a verb give option classes as a whole, or their fields as keywords.

    A parameter `..._options` that is annotated with an option class is a group, or several where
    the class consists of others. Keywords replace the fields of a group that is given as a whole.
    The signature shows every field, and the sentences of all fields that the docstring does not
    explain are added to its `Args` section.

    Args:
        verb: A function; it receives an instance of each of its groups.

    Raises:
        ValueError: A name is a parameter and a field, or a field of two groups.
    """
    parameters = inspect.signature(verb).parameters
    wholes, groups = _option_classes(verb), groups_of(verb)
    names = [name for name in parameters if name not in wholes]
    names += [item.name for group in groups.values() for item in group.fields]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"`{twice}` of {verb.__name__} comes twice: exclude it from a group with `without`"
        )

    @wraps(verb)
    def with_groups(*args: Any, **arguments: Any) -> R:
        unknown = [name for name in arguments if name not in {*names, *groups, *wholes}]
        if unknown:
            raise BadInput(
                f"`{verb.__name__}` has no parameter '{unknown[0]}'{nearest(unknown[0], names)}"
            )
        options = {
            name: _instance(name, cls, arguments.pop(name, None))
            for name, (cls, _) in wholes.items()
        }
        for name, group in groups.items():
            part = getattr(options[group.container], name, options[group.container])
            part = _instance(name, group.cls, arguments.pop(name, None), part)
            values = {
                item.name: arguments.pop(item.name)
                for item in group.fields
                if item.name in arguments
            }
            part = replace(part, **values)
            if group.container != name:
                part = replace(options[group.container], **{name: part})
            options[group.container] = part
        return verb(*args, **arguments, **options)

    shown = [parameter for name, parameter in parameters.items() if name not in wholes]
    for group in groups.values():
        shown += [_as_parameter(item) for item in group.fields]
    classes = {name: group.cls for name, group in groups.items()}
    for name, cls in (classes | {name: cls for name, (cls, _) in wholes.items()}).items():
        annotation = f"{cls.__name__} | None"
        shown.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    shown.sort(key=lambda parameter: parameter.kind)
    with_groups.__signature__ = Signature(  # type: ignore[attr-defined]
        shown, return_annotation=inspect.signature(verb).return_annotation
    )
    with_groups.__doc__ = _completed(verb.__doc__ or "", groups.values())
    return with_groups


def _instance(name: str, cls: type[Any], options: Any, default: Any = None) -> Any:
    """Returns the options that the caller gave as a whole, or the default ones.

    Raises:
        BadInput: The options are of another class.
    """
    if options is None:
        return cls() if default is None else default
    if not isinstance(options, cls):
        raise BadInput(f"`{name}` must be {cls.__name__}, not {type(options).__name__}")
    return options


def groups_of(verb: Callable[..., Any]) -> dict[str, Group]:
    """Returns the option classes of a verb by keyword, with the classes that they contain."""
    groups = {}
    for container, (cls, excluded) in _option_classes(verb).items():
        hints = get_type_hints(cls)
        parts = {name: hint for name, hint in hints.items() if name.endswith("_options")}
        names = {item.name for part in parts.values() or (cls,) for item in fields(part)}
        if unknown := excluded - names - set(parts):
            raise ValueError(f"{cls.__name__} has no field {min(unknown)}")
        for name, part in (parts or {container: cls}).items():
            if name not in excluded:
                shown = tuple(item for item in fields(part) if item.name not in excluded)
                groups[name] = Group(name, part, shown, container)
    return groups


def _option_classes(verb: Callable[..., Any]) -> dict[str, tuple[type[Any], set[str]]]:
    """Returns the classes of a verb's parameters `..._options`, each with its excluded fields."""
    function: Any = inspect.unwrap(verb)
    classes = {}
    for name, annotation in function.__annotations__.items():
        if not name.endswith("_options"):
            continue
        if isinstance(annotation, str):
            annotation = eval(annotation, function.__globals__)
        cls, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not (isinstance(cls, type) and is_dataclass(cls)):
            raise ValueError(f"`{name}` of {function.__name__} is annotated with no option class")
        excluded = {name for note in notes if isinstance(note, _Without) for name in note.names}
        classes[name] = (cls, excluded)
    return classes


def _as_parameter(item: Field[Any]) -> Parameter:
    default = item.default
    if default is MISSING:
        default = Parameter.empty if item.default_factory is MISSING else item.default_factory()
    return Parameter(item.name, Parameter.KEYWORD_ONLY, default=default, annotation=item.type)


def field_help(cls: type[Any]) -> dict[str, str]:
    """Returns the sentences under the fields of an option class, in their order."""
    sentences = _sentences(cls.__module__).get(cls.__name__, {})
    return {name: filled(sentence) for name, sentence in sentences.items()}


def filled(text: str) -> str:
    """Replaces the placeholders of records by their names, such as `{ablations}`."""
    return re.sub(rf"{{({'|'.join(_RECORDS)})}}", lambda match: ", ".join(_names(match[1])), text)


@cache
def _names(menu: str) -> list[str]:
    """Returns the names of records, those of other packages too.

    The source is searched, because importing it would load torch.
    """
    from importlib.metadata import entry_points

    files, record = _RECORDS[menu]
    calls = re.compile(rf'\b{record}\(\s*name="(.+?)"')
    sources = (path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob(files)))
    names = [name for source in sources for name in calls.findall(source)]
    return [*names, *sorted(entry.name for entry in entry_points(group=f"broca.{menu}"))]


@cache
def _sentences(module: str) -> dict[str, dict[str, str]]:
    source = inspect.getsource(sys.modules[module])
    by_class: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        sentences = by_class[node.name] = {}
        for item, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(item.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                sentences[item.target.id] = " ".join(str(text.value.value).split())
    return by_class


_ARGS = re.compile(r"^Args:\n((?:(?:    .*)?\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): ((?:.*\n?)(?:^        .*\n?)*)", re.MULTILINE)
_NEXT_SECTION = re.compile(r"^(?:Returns|Yields|Raises|Examples?|Notes?|Source):$", re.MULTILINE)


def parameter_help(docstring: str) -> dict[str, str]:
    """Returns the sentences of the `Args` section of a docstring, by parameter."""
    section = _ARGS.search(inspect.cleandoc(docstring) + "\n")
    if section is None:
        return {}
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(section[1])}


def _completed(docstring: str, groups: Iterable[Group]) -> str:
    """Returns the docstring with all fields in its `Args` section."""
    text = filled(inspect.cleandoc(docstring)) + "\n"
    explained = parameter_help(text)
    lines = []
    for group in groups:
        sentences = field_help(group.cls)
        for item in group.fields:
            if item.name not in explained and item.name in sentences:
                entry = f"{item.name}: {sentences[item.name]}"
                lines += textwrap.wrap(
                    entry, 96, initial_indent="    ", subsequent_indent="        "
                )
        if group.parameter not in explained:
            lines.append(f"    {group.parameter}: The fields of {group.cls.__name__} as a whole.")
    if not lines:
        return text
    added = "\n".join(lines)
    section = _ARGS.search(text)
    if section is not None:
        head, tail = text[: section.start()], text[section.end() :]
        return f"{head}Args:\n{section[1].rstrip()}\n{added}\n\n{tail}".rstrip() + "\n"
    following = _NEXT_SECTION.search(text)
    place = len(text) if following is None else following.start()
    return f"{text[:place].rstrip()}\n\nArgs:\n{added}\n\n{text[place:]}".rstrip() + "\n"
