"""The options of every verb that measures, and those that some verbs leave out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from broca.errors import BadInput, nearest
from broca.options.keywords import without

Reference = Callable[[Any], "str | Sequence[str] | None"]
"""A function of a document that returns a right answer in full, or the right answer followed by
wrong ones to compare it with, or None to leave the item out of the margin."""

NEW_TOKENS = "max_gen_toks"
"""lm-eval's name of the longest generation in tokens."""

LENGTH_NAMES = (NEW_TOKENS, "max_new_tokens", "max_tokens", "max_completion_tokens")
"""All names that lm-eval accepts for it."""

APPLIED_SETTINGS = (
    "repetition_penalty", "no_repeat_ngram_size", "bad_words_ids", "min_length", "min_new_tokens",
    "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
    "suppress_tokens", "begin_suppress_tokens", "sequence_bias",
)  # fmt: skip
"""Settings of transformers' `generate` that change the most likely token, which are applied."""

REFUSED_SETTINGS = (
    "num_beams", "num_beam_groups", "num_return_sequences", "diversity_penalty", "penalty_alpha",
    "dola_layers", "guidance_scale", "constraints", "force_words_ids", "token_healing",
    "encoder_repetition_penalty", "encoder_no_repeat_ngram_size", "watermarking_config",
    "stop_strings", "max_time",
)  # fmt: skip
"""Settings of `generate` that change a text and are not applied; they can be switched off."""

Switch = Literal["auto", "on", "off"]
"""`auto` lets the planner decide by the work that is saved."""

DEFAULT_METHOD = "pooled"
"""Search method where none is named."""

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Environment variables that keep the hub libraries off the network; each is read once."""

RESPONSES = ("accuracy", "margin", "probability")
"""The responses that a row can have."""


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

    chat_template_kwargs: str | Mapping[str, Any] | None = None
    """Variables of the chat template, NAME=VALUE joined by commas or JSON, such as
    enable_thinking=false."""

    chat_template_date: str | None = None
    """Day that a chat template with a date says, YYYY-MM-DD; default: that of the journal's first
    run that has one, else today."""

    system_prompt: str | None = None
    """Text before every prompt; the system message in a chat template."""

    fewshot_as_multiturn: bool = True
    """With a chat template, give the solved examples as turns, not all in one message."""

    locate_split: str | None = None
    """Official split (train, validation or its own name) that the locate and confirm
    items come from; the report items are then all documents that the task is scored on."""

    gen_kwargs: str | Mapping[str, Any] | None = None
    """Settings of generations that replace the tasks' own, NAME=VALUE joined by commas or JSON:
    max_gen_toks, until and settings of transformers such as repetition_penalty=1.2. Decoding is
    always greedy."""

    max_length: int | None = None
    """Maximum number of tokens that the model reads; longer prompts are cut from the left.
    Default: from the model's configuration, as in lm-eval."""

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
        if self.max_length is not None and self.max_length < 2:
            raise BadInput(f"`max_length` must be at least 2, not {self.max_length}")
        for name, settings in (
            ("gen_kwargs", self.generation),
            ("chat_template_kwargs", self.template_settings),
        ):
            written = json.dumps(settings, sort_keys=True) if settings else None
            object.__setattr__(self, name, written)
        if self.chat_template_kwargs is not None and not self.chat_template:
            raise BadInput(
                "`chat_template_kwargs` are variables of the chat template, which is not used: add "
                "`chat_template`"
            )
        if self.chat_template_date is not None:
            _require_day(self.chat_template_date, used=self.chat_template)
        if isinstance(self.reference, str) and not (
            self.reference in ("own", "gold") or ":" in self.reference
        ):
            raise BadInput(
                f"`reference` '{self.reference}' is unknown"
                f"{nearest(self.reference, ('own', 'gold'))}: use own, gold or FILE.py:FUNCTION"
            )

    @property
    def generation(self) -> dict[str, Any]:
        """The settings of `gen_kwargs`: `max_gen_toks`, a number, `until`, a list, and others."""
        return {} if self.gen_kwargs is None else _generation(self.gen_kwargs)

    @property
    def template_settings(self) -> dict[str, Any]:
        """The variables of `chat_template_kwargs`, by name."""
        pairs = _named_values(self.chat_template_kwargs or {}, option="chat_template_kwargs")
        return {name: _json_value(value) for name, value in pairs}

    def max_length_of(self, configured: int) -> int:
        """Returns the maximum number of input tokens of a model that is configured for some."""
        return configured if self.max_length is None else self.max_length

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from the defaults, for `result.json`."""
        defaults = asdict(TaskOptions())
        values = {name: getattr(self, name) for name in defaults}
        if not isinstance(self.reference, str):
            function = self.reference
            values["reference"] = f"{function.__module__}:{function.__qualname__}"
        return {name: value for name, value in values.items() if value != defaults[name]}


def _require_day(day: str, *, used: bool) -> None:
    """Refuses a `chat_template_date` that is no day, or that no chat template reads.

    Raises:
        BadInput: It is not of the form YYYY-MM-DD, or the chat template is not used.
    """
    try:
        date.fromisoformat(day)
    except (TypeError, ValueError):
        raise BadInput(f"`chat_template_date` must be YYYY-MM-DD, not {day!r}") from None
    if not used:
        raise BadInput(
            "`chat_template_date` is for the chat template, which is not used: add `chat_template`"
        )


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
        elif name in APPLIED_SETTINGS:
            settings[name] = _json_value(value)
        elif name in REFUSED_SETTINGS:
            settings[name] = _json_value(value)
            if settings[name] not in (None, False, 0, 1):
                raise BadInput(
                    f"`gen_kwargs`: {name}={value} is not applied: broca decodes greedily, token "
                    "by token; leave it out"
                )
        else:
            accepted = (NEW_TOKENS, "until", *LENGTH_NAMES, *APPLIED_SETTINGS)
            raise BadInput(
                f"`gen_kwargs`: '{name}' is unknown{nearest(name, accepted)}; use {NEW_TOKENS}, "
                f"until, {', '.join(APPLIED_SETTINGS)}"
            )
    return settings


def _json_value(value: Any) -> Any:
    """Reads a number, true, false, null or a list from text; other text stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value.lower() if value.lower() in ("true", "false", "none") else value)
    except ValueError:
        return None if value.lower() == "none" else value


def _named_values(
    gen_kwargs: str | Mapping[str, Any], *, option: str = "gen_kwargs"
) -> list[tuple[str, Any]]:
    """Names and values of a mapping, of JSON, or of NAME=VALUE pairs joined by commas."""
    if isinstance(gen_kwargs, str) and gen_kwargs.lstrip().startswith("{"):
        try:
            gen_kwargs = json.loads(gen_kwargs)
        except ValueError as error:
            raise BadInput(f"`{option}` '{gen_kwargs}' is not JSON: {error}") from error
    if isinstance(gen_kwargs, Mapping):
        return list(gen_kwargs.items())
    pairs = [pair.partition("=") for pair in gen_kwargs.split(",") if pair.strip()]
    for name, separator, _ in pairs:
        if not separator or not name.strip():
            raise BadInput(
                f"`{option}` '{gen_kwargs}' is not of the form NAME=VALUE,NAME=VALUE; a text "
                'with a comma needs JSON, {"until": ["a,b"]}'
            )
    return [
        (
            name.strip(),
            value.replace("\\n", "\n").replace("\\t", "\t")
            if name.strip() == "until"
            else value.strip(),
        )
        for name, _, value in pairs
    ]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a search works, and how much it may measure.

    Raises:
        BadInput: A value that does not exist.
    """

    method: str | None = None
    """Search method; default: {default_method}, or cs-stratified where a recovery is given."""

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
