"""The options of every verb but those about neurons: the verb's own, and the groups that it has."""

from dataclasses import field
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from msgspec import Meta

from broca.options import running
from broca.options.base import NAMES, ON, WHOLE, Called, Count, Names, Options, Said, Scoped, Seed

ARGUMENTS = Group("Arguments", sort_key=0)
"""The heading of positional arguments in `--help`."""

POSITION = Parameter(group=ARGUMENTS)
"""A positional argument of the command line."""

WORDS = Parameter(
    group=ARGUMENTS,
    allow_leading_hyphen=False,
    converter=lambda _, tokens: [token.value for token in tokens],
)
"""Positional arguments of the command line, all of them."""


class OnModel(Options):
    """What every verb about one model has."""

    model: Annotated[Any, POSITION] = field(kw_only=False)
    """reference, reference-small, planted, smollm2, a model folder, a GGUF file or a hub id."""


class _OnRun(Options):
    """What verbs have that take the heads of a run, or given heads."""

    target: Annotated[Any, POSITION] = field(kw_only=False)
    """The out folder of a run; with `heads`, a model."""


class LocalizeOptions(OnModel):
    """The options of `localize`."""

    task: Any
    """The task to localize: shipped, in `include_path`, any of lm-eval, or a JSON-lines file."""

    others: Names = "auto"
    """Tasks that the heads should not affect: T1,T2, "" for none, or auto: all other shipped tasks
    for a shipped model, else those of `include_path`; neutral text for one's own examples. Tasks
    whose metadata state the capability of the task are reported separately."""

    same_skill: Names = ""
    """More tasks of the same capability, T1,T2: reported separately."""

    report_items: Annotated[Count | None, WHOLE] = None
    """Maximum number of report items of the task, and of all others together; default: 300, or
    what `rows` and `max_minutes` allow."""

    seed: Annotated[Seed, WHOLE] = 0
    """Seed of the item split, the masks and all other random draws."""

    verify: Annotated[bool, ON] = True
    """End with statistics, random sets and a verdict."""

    seeds: Annotated[Count, WHOLE] = 1
    """Number of searches, each on different items and masks: the first one's selection is verified,
    the others measure how stable it is."""

    alternatives: Annotated[Annotated[int, Meta(ge=0)], WHOLE] = 0
    """Maximum number of sets to search for while the set is ablated, and as many among all other
    heads; each search has as many rows as the first."""

    search_options: running.SearchOptions = field(default_factory=running.SearchOptions)
    run_options: running.RunOptions = field(default_factory=running.RunOptions)


class VerifyOptions(Options):
    """The options of `verify`."""

    target: Annotated[Any, POSITION] = field(kw_only=False)
    """The out folder of a run; with `heads` or `neurons`, a model."""

    task: Any = None
    """The task for which they are claimed; default: the run's."""

    heads: Names = None
    """Heads to verify, L0H4+L1H8, or published:MODEL/TASK/METHOD; default: the run's selection."""

    neurons: Names = None
    """Neurons to ablate too, L2N17+L3N4, or a folder of `broca neurons locate`."""

    model: Any = None
    """The model, if the run's model has moved."""

    others: Names = "auto"
    """Tasks that should not suffer, as in localize; default: the run's."""

    same_skill: Names = ""
    """More tasks of the same capability, T1,T2."""

    seed: Annotated[Seed | None, WHOLE] = None
    """Seed; default: the run's, which splits the items as the run did, or 0."""

    limit: Annotated[Annotated[int, Meta(ge=8)] | None, WHOLE] = None
    """Maximum number of report items of each task; default: all."""

    ablation: str | None = None
    """Kind of ablation: {ablations}; default: the run's, or zero."""

    scale: float | None = None
    """Gate of an ablated component; default: the run's, or 0."""

    rows: Annotated[Annotated[int, Meta(ge=1000, le=10**9)], WHOLE] = 12_000
    """Maximum number of (mask, item) rows."""

    controls: Annotated[Annotated[int, Meta(ge=0)], WHOLE] = 79
    """Maximum number of random sets of each kind; 0: none."""

    enough: bool = False
    """Measure also what the set does alone, all others of its kinds ablated: half of `rows` is for
    that."""

    scope: Scoped = None
    """Which tests are made, and on how many items: `broca.Scope`; it replaces `rows` and
    `controls`."""

    run_options: running.VerifyRun = field(default_factory=running.VerifyRun)


class ReplicateOptions(Options):
    """The options of `replicate`."""

    claim: Annotated[Any, POSITION] = field(kw_only=False)
    """A claim.json, or the folder that holds it."""

    model: Any = None
    """The model, if the claim's model has moved."""

    wordings: Names = "auto"
    """Tasks that ask the same documents in other words, T1,A.yaml, or nothing; auto: those
    that the claim names."""

    seeds: Annotated[Count, WHOLE] = 2
    """Number of other seeds."""

    rows: Annotated[Annotated[int, Meta(ge=1000, le=10**9)], WHOLE] = 12_000
    """Number of (mask, item) rows; a wording takes a seventh of the rows of a seed, which needs
    2,000 or more for most claims."""

    run_options: running.HeadsRun = field(default_factory=running.HeadsRun)


class AtlasOptions(OnModel):
    """The options of `atlas`."""

    tasks: Names = "auto"
    """T1,T2,...; auto: all shipped ones for a shipped model, else those of `include_path`."""

    seed: Annotated[Seed, WHOLE] = 0
    """Seed of the items, the masks and all other random draws."""

    rows: Annotated[Count | None, WHOLE] = None
    """Maximum number of (mask, item) rows over all tasks; default: 800 for each."""

    k: Annotated[Count, WHOLE] = 5
    """Maximum number of heads to select for a task."""

    items: Annotated[Count, WHOLE] = 100
    """Maximum number of items of each task."""

    response: running.Response | None = None
    """accuracy, margin or probability; default: probability if every task has items with a
    margin."""

    run_options: running.AtlasRun = field(default_factory=running.AtlasRun)


class StressOptions(_OnRun):
    """The options of `stress`."""

    heads: Names = None
    """Heads, L0H4+L1H8, or published:MODEL/TASK/METHOD; default: the run's selection."""

    family: str = "letters"
    """Prompts with two operations on the same operands: letters, for runs about sorting or
    reversing, or a YAML file that names the run's task in its `tasks`."""

    control: list[str] = field(default_factory=lambda: ["sums"])
    """A family for which the heads should not matter: sums, or a YAML file; may be repeated."""

    pairs: Annotated[Annotated[int, Meta(ge=16)], WHOLE] = 48
    """Maximum number of operands of each family, and of pairs of a source and a target."""

    sets: Annotated[Count, WHOLE] = 20
    """Number of random sets from the same layers."""

    seed: Annotated[Seed, WHOLE] = 0
    """Seed of pairs, random sets and resampling."""

    run_options: running.PromptsRun = field(default_factory=running.PromptsRun)


class CompareOptions(Options):
    """The options of `compare`."""

    models: Annotated[list[Any], WORDS, NAMES] = field(kw_only=False)
    """Models, or out folders of runs or atlases; the first is the reference."""

    tasks: Names = ""
    """T1,T2,...; default: those of the runs."""

    heads: Names = ""
    """Components to ablate together in every model, L0H4+L1H8."""

    revisions: Annotated[list[str], Parameter(name="--revision")] = field(default_factory=list)
    """A revision of a single model; may be repeated."""

    rows: Annotated[Count | None, WHOLE] = None
    """Rows with random masks for each model and task; default: six for each component, at least
    1,000."""

    items: Annotated[Annotated[int, Meta(ge=10)], WHOLE] = 100
    """Maximum number of items of a task for these rows."""

    limit: Annotated[Count | None, WHOLE] = None
    """Maximum number of report items of a task, on which scores are measured; default: all."""

    response: running.Response | None = None
    """accuracy, margin or probability; default: probability if the models share right answers."""

    level: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Level of tests and intervals, and the false discovery rate."""

    seed: Annotated[Seed | None, WHOLE] = None
    """Seed of all random draws; default: the first run's, or 0."""

    run_options: running.CompareRun = field(default_factory=running.CompareRun)


class PlanOptions(OnModel):
    """The options of `plan`."""

    task: Any
    """The task: shipped, in `include_path`, any of lm-eval, or a JSON-lines file."""

    others: Names = "auto"
    """Tasks that the heads should not affect, as in localize."""

    seed: Annotated[Seed, WHOLE] = 0
    """Seed of the item split, and of the timed rows."""

    sample: Annotated[Count, WHOLE] = 32
    """Number of rows to time for each response."""

    search_options: running.BudgetOptions = field(default_factory=running.BudgetOptions)
    run_options: running.GivenAblation = field(default_factory=running.GivenAblation)


class RefitOptions(Options):
    """The options of `refit`."""

    run: Annotated[str, POSITION] = field(kw_only=False)
    """The out folder of a run of `broca localize`, finished or not."""

    recovery: Any = "lasso"
    """{recoveries}; in Python also a scikit-learn regressor that has coefficients."""

    k: Annotated[Count | None, WHOLE] = None
    """Maximum number of heads to select; default: the run's."""

    resamples: Annotated[Annotated[int, Meta(ge=0)], WHOLE] = 100
    """Number of resamples for frequencies; 0: none."""

    interactions: bool = False
    """Fit interactions of two and more components too."""


class RerunOptions(Options):
    """The options of `rerun`."""

    folder: Annotated[str, POSITION] = field(kw_only=False)
    """The out folder of a finished run of `broca localize`."""

    from_scratch: bool = False
    """Load the model and measure every row again; by default the search is repeated with the rows
    of the journal, without a model."""

    run_options: running.GivenAblation = field(default_factory=running.GivenAblation)


class ScanOptions(OnModel):
    """The options of `scan`."""

    model_options: running.ModelOptions = field(default_factory=running.ModelOptions)

    on_progress: Called = None
    """Receives the current stage."""


class DescribeTaskOptions(Options):
    """The options of `describe_task`."""

    task: Annotated[Any, POSITION] = field(kw_only=False)
    """A task or group to show: shipped, in `include_path`, any of lm-eval, or a JSON-lines file."""

    model: Any = "reference"
    """Model whose tokenizer and context length are used."""

    source_options: running.SourceOptions = field(default_factory=running.SourceOptions)
    task_options: running.TaskOptions = field(default_factory=running.TaskOptions)


class ExploreOptions(Options):
    """The options of `explore`."""

    target: Annotated[Any, POSITION] = field(kw_only=False)
    """A model, or the out folder of a run, whose model and sets are used."""

    tasks: Names = "auto"
    """Tasks with a live score, T1,T2; auto: the run's, or the shipped tasks or those of
    `include_path`."""

    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 admits other machines, with a token."""

    port: Annotated[int, WHOLE] = 7860
    """Port; 0 chooses a free one."""

    token: str | None = None
    """Token of the address; default: none on this machine, else a random one."""

    public: bool = False
    """Let anyone use the page at an open address, without a token, as a Space does."""

    run_options: running.GivenAblation = field(default_factory=running.GivenAblation)


class ExportOptions(_OnRun):
    """The options of `export`."""

    to: str
    """Folder for the export; a new one, or that of an earlier export."""

    heads: Names = None
    """Components, L0H4+L1M, or published:MODEL/TASK/METHOD; default: the run's selection."""

    kind: Literal["adapter", "weights", "heads"] = "adapter"
    """adapter (PEFT), weights (a checkpoint) or heads (a list)."""

    scale: float | None = None
    """Factor of their outputs; default: the run's, or 0."""

    check: bool = False
    """Compare lm-eval's score of the export with broca's."""

    task: Any = None
    """The task of `check`; default: the run's."""

    items: Annotated[Count | None, WHOLE] = None
    """Under mean ablation, the number of items of the mean; default: the run's."""

    run_options: running.HeadsRun = field(default_factory=running.HeadsRun)


class ChatOptions(_OnRun):
    """The options of `chat`."""

    lines: Said = field(default=(), kw_only=False)
    """What the user says, line by line."""

    heads: Names = None
    """Components, L0H4+L1M, or published:MODEL/TASK/METHOD; default: the run's selection."""

    scale: float = 0.0
    """Factor of their outputs; 0 ablates."""

    system_prompt: str = ""
    """Text before everything else."""

    chat_template_kwargs: Any = None
    """Variables of the chat template, NAME=VALUE joined by commas or JSON."""

    max_new_tokens: Annotated[Count, WHOLE] = 200
    """Maximum number of tokens of an answer."""

    model_options: running.FixedComponents = field(default_factory=running.FixedComponents)

    write: Called = None
    """Receives pieces of answers as they are generated, each with its voice, intact or ablated; the
    conversation's own lines have an empty voice."""

    on_progress: Called = None
    """Receives the current stage before the first line is read."""


class ReproduceOptions(Options):
    """The options of `reproduce`."""

    name: Annotated[Any, POSITION] = field(kw_only=False)
    """One of {studies}, several as A,B, or all."""

    model: Annotated[list[Any], WORDS, NAMES] = field(kw_only=False)
    """Models, whose rows share one table."""

    tasks: Names = "auto"
    """Tasks to measure, T1,T2, or auto: the shipped ones for a shipped model, else those of
    `include_path`, else the paper's."""

    method: str = "cs-stratified"
    """Search method of the lists; default: the paper's."""

    limit: Annotated[Annotated[int, Meta(ge=8)] | None, WHOLE] = None
    """Maximum number of report items of each task."""

    keep_universal: bool = False
    """Leave universal heads in the lists."""

    seed: Annotated[Seed, WHOLE] = 0
    """Seed of all random draws."""

    search_options: running.BudgetOptions = field(default_factory=running.BudgetOptions)
    run_options: running.PaperRun = field(default_factory=running.PaperRun)

    def __post_init__(self) -> None:
        models: Any = self.model
        if not isinstance(models, list):
            object.__setattr__(self, "model", [*models] if isinstance(models, tuple) else [models])
        super().__post_init__()
