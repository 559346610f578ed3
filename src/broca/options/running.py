"""The groups of options that several verbs share."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta

from broca.errors import BadInput, nearest
from broca.options.base import (
    HIDDEN,
    ON,
    PYTHON_ONLY,
    WHOLE,
    Called,
    Count,
    Options,
    leaf_values,
    shown_as,
)
from broca.options.generation import generation_settings, json_value, named_values, require_day

Reference = Callable[[Any], "str | Sequence[str] | None"]
"""A function of a document that returns a right answer in full, or the right answer followed by
wrong ones to compare it with, or None to leave the item out of the margin."""

Switch = Literal["auto", "on", "off"]
"""`auto` lets the planner decide by the work that is saved."""

Response = Literal["accuracy", "margin", "probability", "match"]
"""The responses that a row can have."""

DEFAULT_METHOD = "pooled"
"""Search method where none is named."""

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Environment variables that keep the hub libraries off the network; each is read once."""


GRANTS: Mapping[str, tuple[Any, ...]] = {
    "trust_remote_code": (False,), "allow_pickle": (False,), "allow_code": (False,),
    "fetch_urls": (False,), "include_path": (None,), "reference": ("own", "gold"),
    "journal": (None,), "address": (None,),
}  # fmt: skip
"""Options that run code of files, reach other places or write there, with the values that do not:
they are taken from whoever gives a command, and never from a folder or a file that it reads."""


@shown_as("Model", "How a model is loaded.", 4)
class ModelOptions(Options):
    """How a model is loaded; one that is loaded already refuses other values than it has."""

    HOW: ClassVar[frozenset[str]] = frozenset({"device", "device_map", "allow_pickle", "trust"})
    OF_WORKERS: ClassVar = ("device_map", "allow_pickle", "trust_remote_code", "merge_adapter")

    components: str = "heads"
    """What can be ablated: {components}, joined by +."""

    revision: str | None = None
    """Branch, tag or commit of a model on the hub."""

    dtype: str = "auto"
    """Number format of the weights: float32, bfloat16, float16, stored (as in the files) or auto
    (float32 on a CPU; quantized ones as stored)."""

    device: str | None = None
    """Device, such as cpu or cuda:0; default: the fastest one."""

    device_map: str | None = None
    """auto spreads the model over all devices."""

    allow_pickle: bool = False
    """Load weights in pickle format (tensors only)."""

    trust_remote_code: bool = False
    """Run the model's own Python files if transformers has no class for it."""

    merge_adapter: Annotated[bool, ON] = True
    """Merge a PEFT adapter into the weights of its base model instead of running it beside them."""

    trust: str | None = None
    """A path outside of a run folder from which it may name its model and files of examples."""

    def keywords(self) -> dict[str, Any]:
        """Returns the keywords of `broca.load`."""
        return {name: value for name, value in vars(self).items() if name != "trust"}

    @classmethod
    def require_unused(cls, given: Mapping[str, Any], *, components: str, model: str) -> None:
        """Refuses options of loading for a model that is loaded.

        Args:
            given: The keywords of a call, also groups of options. Ray's workers load the model
                again, as some of them say.
            components: Kinds of components of the model.
            model: Name of the model.

        Raises:
            BadInput: An option has another value than its default, or the components are others.
        """
        inner = dict(pair for group in given.values() for pair in leaf_values(group) if pair[0])
        if inner.get("components") == cls.components:  # a group says it of every model
            del inner["components"]
        if not hasattr(inner.get("journal"), "catalog"):  # of a verb that calls this one
            given = {**inner, **given}
        obeyed = {"trust", *(cls.OF_WORKERS if given.get("executor") == "ray" else ())}
        for name, value in vars(cls(components=components)).items():
            if given.get(name, value) != value and name not in obeyed:
                raise BadInput(
                    f"`{name}` is for loading a model, and '{model}' is loaded: leave it out, or "
                    "load the model with it"
                )


class FixedComponents(ModelOptions):
    """Of a verb that knows which components it ablates."""

    components: Annotated[str, HIDDEN] = "heads"


class ComparedModels(ModelOptions):
    """Of models that are compared, each at its own revision."""

    revision: Annotated[str | None, HIDDEN] = None


@shown_as("Sources", "Where tasks come from, and whether they may execute code.", 5)
class SourceOptions(Options):
    """Where tasks come from, and whether they may execute code."""

    include_path: str | None = None
    """A folder of lm-eval YAML tasks to add."""

    allow_code: bool = False
    """Let tasks execute what the model writes, in bubblewrap (docs/sandbox.md)."""

    fetch_urls: bool = False
    """Let tasks fetch data from the addresses that their files name, besides data sets of the
    hub."""


@shown_as("Task", "How tasks are prompted and scored.", 6)
class TaskOptions(Options):
    """How tasks are prompted and scored; the tasks' own files define everything else.

    Raises:
        BadInput: A value that does not exist.
    """

    metric: str | None = None
    """Metric of the localized task, NAME or NAME,FILTER as lm-eval writes it, such as
    exact_match,flexible-extract; default: acc_norm where the task has it, else its first."""

    num_fewshot: Annotated[Annotated[int, Meta(ge=0)] | None, WHOLE] = None
    """Solved examples before each question; default: what the task says. A task that fixes 0 is
    asked without examples, as in lm-eval."""

    limit: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Number of documents of each task to use, from the first; below 1, a share of them."""

    chat_template: bool = False
    """Write prompts in the tokenizer's chat template."""

    chat_template_kwargs: Any = None
    """Variables of the chat template, NAME=VALUE joined by commas or JSON, such as
    enable_thinking=false."""

    chat_template_date: Any = None
    """Day that a chat template with a date says, YYYY-MM-DD; default: that of the journal's first
    run that has one, else today."""

    system_prompt: str | None = None
    """Text before every prompt; the system message in a chat template."""

    fewshot_as_multiturn: Annotated[bool, ON] = True
    """With a chat template, give the solved examples as turns, not all in one message."""

    locate_split: str | None = None
    """Official split (train, validation or its own name) that the locate and confirm items come
    from; the report items are then all documents that the task is scored on."""

    gen_kwargs: Any = None
    """Settings of generations that replace the tasks' own, NAME=VALUE joined by commas or JSON:
    max_gen_toks, until and settings of transformers such as repetition_penalty=1.2. Decoding is
    always greedy."""

    max_length: Annotated[Annotated[int, Meta(ge=2)] | None, WHOLE] = None
    """Maximum number of tokens that the model reads; longer prompts are cut from the left.
    Default: from the model's configuration, as in lm-eval."""

    reference: Any = "own"
    """Answer whose probability is the margin of a generation: own (the intact model's, where it
    is right), gold (the task's target) or FILE.py:FUNCTION; in Python also a function."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit is not None and self.limit > 1 and self.limit != int(self.limit):
            raise BadInput(
                f"`limit` must be a number of documents or a share below 1, not {self.limit:g}"
            )
        if self.metric is not None and not self.metric.strip():
            raise BadInput("`metric` is empty: give NAME or NAME,FILTER")
        for name, settings in (
            ("gen_kwargs", self.generation),
            ("chat_template_kwargs", self.template_settings),
        ):
            try:  # of what JSON has no form of, NumPy's values become Python's
                written = json.dumps(settings, sort_keys=True, default=lambda one: one.tolist())
            except (AttributeError, TypeError, ValueError):
                raise BadInput(f"`{name}` takes texts, numbers and lists, not {settings}") from None
            object.__setattr__(self, name, written if settings else None)
        for name in ("chat_template_kwargs", "chat_template_date", "fewshot_as_multiturn"):
            if getattr(self, name) != getattr(TaskOptions, name) and not self.chat_template:
                raise BadInput(
                    f"`{name}` is for the chat template, which is not used: add `chat_template`"
                )
        if self.chat_template_date is not None:
            require_day(self.chat_template_date)
        if not callable(self.reference) and not (
            isinstance(self.reference, str)
            and (self.reference in ("own", "gold") or ":" in self.reference)
        ):
            raise BadInput(
                f"`reference` '{self.reference}' is unknown"
                f"{nearest(self.reference, ('own', 'gold'))}: use own, gold or FILE.py:FUNCTION"
            )

    @property
    def generation(self) -> dict[str, Any]:
        """The settings of `gen_kwargs`: `max_gen_toks`, a number, `until`, a list, and others."""
        return {} if self.gen_kwargs is None else generation_settings(self.gen_kwargs)

    @property
    def template_settings(self) -> dict[str, Any]:
        """The variables of `chat_template_kwargs`, by name."""
        pairs = named_values(self.chat_template_kwargs or {}, option="chat_template_kwargs")
        return {name: json_value(value) for name, value in pairs}

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from the defaults, for `result.json`."""
        defaults = asdict(TaskOptions())
        values = {name: getattr(self, name) for name in defaults}
        if not isinstance(self.reference, str):
            function = getattr(self.reference, "func", self.reference)  # of a partial function
            name = getattr(function, "__qualname__", type(function).__qualname__)
            values["reference"] = f"{function.__module__}:{name}"
        return {name: value for name, value in values.items() if value != defaults[name]}


class ReportedTasks(TaskOptions):
    """Of a verb whose own `limit` counts report items."""

    limit: Annotated[float | None, HIDDEN] = None


class EqualTasks(TaskOptions):
    """Of tasks none of which is the localized one: each has its own metric."""

    metric: Annotated[str | None, HIDDEN] = None


class ComparedTasks(EqualTasks, ReportedTasks):
    """Of tasks that models are compared on."""


class NeuronTasks(TaskOptions):
    """Of tasks whose right answers are the reference."""

    reference: Annotated[Any, HIDDEN] = "own"


class BudgetOptions(Options):
    """How much a search may measure, and how many components it selects."""

    rows: Annotated[Count | None, WHOLE] = None
    """Maximum number of (mask, item) rows of the search; default: what the method needs."""

    k: Annotated[Count, WHOLE] = 5
    """Maximum number of heads to select."""

    items: Annotated[Count, WHOLE] = 100
    """Maximum number of items to search on."""


@shown_as("Search", "How the search works, and how much it may measure.", 3)
class SearchOptions(BudgetOptions):
    """How a search works, and how much it may measure."""

    rows: Annotated[Count | None, WHOLE] = None
    """Maximum number of (mask, item) rows with ablations, half of them for a verification if there
    is one; default: as the method needs, and at most as many again."""

    method: str | None = None
    """{methods}; default: pooled, or cs-stratified with a recovery."""

    max_minutes: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Maximum minutes for measuring rows, of the verification too; some rows are timed first."""

    response: Response | None = None
    """Response that the search measures: accuracy (the task's metric), margin, probability, or
    match, whose answers compete with the likeliest other tokens alone; default: the method's
    choice. Verification always uses the task's metric."""

    options: Annotated[dict[str, Any], PYTHON_ONLY] = field(default_factory=dict)
    """Settings of the method, such as `recovery`, a name or a scikit-learn regressor."""


@shown_as("Ablation", "What ablated components are replaced by.", 7)
class AblationOptions(Options):
    """What an ablated component is replaced by."""

    ablation: str = "zero"
    """Kind of ablation: {ablations}."""

    scale: Annotated[float, Meta(ge=-1e9, le=1e9)] = 0.0
    """Gate of an ablated component; 0 ablates, other values scale."""


class ScaleOptions(AblationOptions):
    """Of a verb that ablates by zero or by a scale."""

    ablation: Annotated[str, HIDDEN] = "zero"


@shown_as("Engine", "How the engine runs; results do not depend on it.", 8)
class EngineOptions(Options):
    """How the engine runs; these options affect speed and memory, not results."""

    token_budget: Annotated[Count | None, WHOLE] = None
    """Maximum number of tokens of a batch, padding included; default: derived from the free
    memory."""

    share_prefixes: Switch = "auto"
    """Read a prompt prefix once for all rows that share it and their mask: auto, on or off."""

    reuse_layers: Switch = "auto"
    """Read the layers below the first ablated one once for all masks of an item: auto, on or
    off."""

    compact: Annotated[bool, ON] = True
    """Replace finished generations in a batch with new rows."""

    lanes: Annotated[Count | None, WHOLE] = None
    """Copies of the model that run in parallel and share their weights; default: one for each
    thread if the model is small and on a CPU, else one."""


@shown_as("Executor", "Where rows are measured.", 9)
class ExecutorOptions(Options):
    """Where rows are measured.

    Raises:
        BadInput: A number out of range.
    """

    executor: Literal["local", "ray"] = "local"
    """Where rows are measured (docs/scale.md): local (in this process) or ray."""

    address: str | None = None
    """Address of a running Ray cluster, or auto; default: start a cluster on this machine."""

    workers: Annotated[Count | None, WHOLE] = None
    """Number of Ray workers; default: as many as the cluster can hold."""

    gpus_per_worker: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    """GPUs of each Ray worker; a large model is spread over several."""

    batch_limit: Annotated[float, Meta(gt=0, le=1e9)] = 1800.0
    """Seconds of a batch after which a Ray worker counts as hung."""

    def __post_init__(self) -> None:
        super().__post_init__()
        gpus = self.gpus_per_worker
        if gpus is not None and gpus > 1 and gpus != int(gpus):
            raise BadInput(f"`gpus_per_worker` must be a whole number or less than 1, not {gpus:g}")


@shown_as("Journal", "Where measured rows are kept.", 10)
class JournalOptions(Options):
    """Where measured rows are kept."""

    journal: Any = None
    """A journal to share between runs; default: the out folder's journal, or memory without a
    folder."""

    keep_outputs: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of the rows whose raw output the journal keeps."""


class ObservedJournal(JournalOptions):
    """Of a verb whose rows have no raw output."""

    keep_outputs: Annotated[float, HIDDEN] = 0.0


class RunOptions(Options):
    """The options of every verb that measures, group by group."""

    HOW: ClassVar[frozenset[str]] = frozenset(
        {"engine_options", "executor_options", "journal_options", "on_progress"}
    )

    source_options: SourceOptions = field(default_factory=SourceOptions)
    task_options: TaskOptions = field(default_factory=TaskOptions)
    ablation_options: AblationOptions = field(default_factory=AblationOptions)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    engine_options: EngineOptions = field(default_factory=EngineOptions)
    executor_options: ExecutorOptions = field(default_factory=ExecutorOptions)
    journal_options: JournalOptions = field(default_factory=JournalOptions)

    on_progress: Called = None
    """Receives the current stage and the progress of the run."""

    def within(self, workspace: Any) -> Self:
        """Returns the options for a call within the verb, in an open workspace, not reported."""
        journal_options = replace(self.journal_options, journal=workspace)
        return replace(self, journal_options=journal_options, on_progress=None)


class GivenAblation(RunOptions):
    """Of a verb that has its own say about the ablation."""

    ablation_options: Annotated[AblationOptions, HIDDEN] = field(default_factory=AblationOptions)


class VerifyRun(GivenAblation):
    """Of a verification, whose `limit` counts report items."""

    task_options: ReportedTasks = field(default_factory=ReportedTasks)


class AtlasRun(RunOptions):
    """Of an atlas, whose tasks are equal."""

    task_options: EqualTasks = field(default_factory=EqualTasks)


class CompareRun(RunOptions):
    """Of a comparison: zero ablation or a scale, each model at its own revision."""

    task_options: ComparedTasks = field(default_factory=ComparedTasks)
    ablation_options: ScaleOptions = field(default_factory=ScaleOptions)
    model_options: ComparedModels = field(default_factory=ComparedModels)


class HeadsRun(GivenAblation):
    """Of a verb that knows its components."""

    model_options: FixedComponents = field(default_factory=FixedComponents)


class NeuronRunOptions(HeadsRun):
    """Of a verb about neurons: they are the components, and the right answers the reference."""

    task_options: NeuronTasks = field(default_factory=NeuronTasks)


class LocateRun(NeuronRunOptions):
    """Of a verb that reads vectors alone."""

    journal_options: ObservedJournal = field(default_factory=ObservedJournal)


class PromptsRun(HeadsRun):
    """Of a verb that brings its own prompts."""

    source_options: Annotated[SourceOptions, HIDDEN] = field(default_factory=SourceOptions)
    task_options: Annotated[TaskOptions, HIDDEN] = field(default_factory=TaskOptions)
    journal_options: ObservedJournal = field(default_factory=ObservedJournal)


class PaperRun(HeadsRun):
    """Of the paper's tables, which fix how tasks are asked."""

    task_options: Annotated[TaskOptions, HIDDEN] = field(default_factory=TaskOptions)
