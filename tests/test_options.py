"""Option classes check their values, explain their fields, and become keywords of a verb."""

import inspect
import subprocess
import sys
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint
from typing import Annotated

import pytest

from broca import options
from broca.errors import BadInput
from broca.options import (
    DataOptions,
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    ProgressOptions,
    RunOptions,
    SearchOptions,
    TaskOptions,
    field_help,
    groups_of,
    parameter_help,
    takes_options,
    without,
)

CLASSES = [
    cls for name, cls in vars(options).items() if name.endswith("Options") and is_dataclass(cls)
]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_field_has_a_sentence_and_a_default(cls):
    """Every field has a sentence for `--help`; a class can be made without arguments."""
    assert list(field_help(cls)) == [field.name for field in fields(cls)]
    assert all(text.endswith(".") for text in field_help(cls).values())
    assert cls() == cls()


def test_names_of_records_stand_for_placeholders(monkeypatch):
    """Placeholders are replaced by the names of records, those of other packages last."""
    entry = EntryPoint("slurm", "theirs:SLURM", "broca.executors")
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: [entry] if group == entry.group else [],
    )
    monkeypatch.setattr(options, "_names", options._names.__wrapped__)
    assert options.filled("Use {executors} or {ablations}; {other} stays.") == (
        "Use local, ray, slurm or zero, mean, resample; {other} stays."
    )
    assert "local, ray, slurm;" in field_help(ExecutorOptions)["executor"]


def test_nothing_heavy_is_loaded():
    """Reading the options for `--help` imports neither numpy, torch nor transformers."""
    code = (
        "import sys; from broca import options; options.field_help(options.AblationOptions);"
        "print([name for name in ('numpy', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (TaskOptions, {"num_fewshot": -1}, "`num_fewshot` must be 0 or more"),
        (TaskOptions, {"limit": 0}, "`limit` must be"),
        (TaskOptions, {"limit": 2.5}, "`limit` must be"),
        (TaskOptions, {"metric": " "}, "`metric` is empty"),
        (TaskOptions, {"reference": "golden"}, "`reference` 'golden' is unknown"),
        (SearchOptions, {"k": 0}, "`k` must be at least 1, not 0"),
        (SearchOptions, {"rows": 0}, "`rows` must be at least 1"),
        (SearchOptions, {"items": -3}, "`items` must be at least 1"),
        (SearchOptions, {"response": "x"}, "`response` 'x' is unknown: use accuracy, margin or"),
        (EngineOptions, {"share_prefixes": "yes"}, "`share_prefixes` 'yes' is unknown"),
        (EngineOptions, {"reuse_layers": ""}, "`reuse_layers` '' is unknown"),
        (EngineOptions, {"token_budget": 0}, "`token_budget` must be at least 1"),
        (EngineOptions, {"lanes": 0}, "`lanes` must be at least 1"),
        (ExecutorOptions, {"executor": "ray", "workers": 0}, "`workers` must be at least 1"),
        (ExecutorOptions, {"executor": "ray", "gpus_per_worker": 1.5}, "`gpus_per_worker` must"),
        (ExecutorOptions, {"batch_limit": 0}, "`batch_limit` must be above 0"),
        (JournalOptions, {"keep_outputs": 2}, "`keep_outputs` must lie between 0 and 1"),
        (DataOptions, {"fields": "prompt"}, "`fields` 'prompt' is not of the form"),
        (DataOptions, {"fields": "prompt= "}, "is not of the form"),
    ],
)
def test_values_that_mean_nothing_are_refused(cls, values, message):
    """The message names the parameter in backticks."""
    with pytest.raises(BadInput, match=message):
        cls(**values)


def test_only_what_differs_is_recorded():
    """`to_dict` holds the values that differ from the defaults, and functions by their names."""
    assert TaskOptions().to_dict() == {}
    assert TaskOptions(limit=0.5, chat_template=True).to_dict() == {
        "limit": 0.5,
        "chat_template": True,
    }
    recorded = TaskOptions(reference=test_only_what_differs_is_recorded).to_dict()["reference"]
    assert recorded.endswith(":test_only_what_differs_is_recorded")


@pytest.mark.parametrize(
    "settings",
    [
        "max_gen_toks=64,until=Q:",
        " max_new_tokens=64 , until=Q:",
        '{"until": ["Q:"], "max_tokens": 64, "do_sample": false}',
        {"max_completion_tokens": 64, "until": "Q:", "temperature": 0.0},
    ],
)
def test_settings_of_generations_are_read_in_every_form(settings):
    """Pairs, JSON and mappings give equal options, which are hashable and recorded as JSON."""
    options = TaskOptions(gen_kwargs=settings)
    assert options.generation == {"max_gen_toks": 64, "until": ["Q:"]}
    assert options == TaskOptions(gen_kwargs=options.gen_kwargs)
    assert options.to_dict() == {"gen_kwargs": '{"max_gen_toks": 64, "until": ["Q:"]}'}
    assert hash(options) == hash(TaskOptions(gen_kwargs=settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("max_gen_tok=3", "'max_gen_tok' is unknown; did you mean 'max_gen_toks'"),
        ("max_gen_toks=0", "must be a number of tokens, not '0'"),
        ("max_gen_toks=many", "must be a number of tokens, not 'many'"),
        ("max_gen_toks", "is not of the form NAME=VALUE"),
        ("{max_gen_toks: 3", "is not JSON"),
        ({"until": 3}, "until must be a text or a list of texts, not 3"),
        ("do_sample=true", "requests sampling"),
        ("temperature=0.7", "requests sampling"),
    ],
)
def test_settings_of_generations_are_refused(settings, message):
    """Unknown settings, values of another type and sampling are refused."""
    with pytest.raises(BadInput, match=message):
        TaskOptions(gen_kwargs=settings)


def test_columns_of_data_sets_are_read():
    """`fields` gives the column of each part of an example."""
    assert DataOptions(fields="prompt=question, answer = target").columns == {
        "prompt": "question",
        "answer": "target",
    }


@takes_options
def measure(
    model: str,
    task: str = "addition",
    *,
    limit: int | None = None,
    search_options: SearchOptions,
    task_options: Annotated[TaskOptions, without("limit", "metric")],
) -> tuple:
    """Measures something.

    Args:
        model: What is measured.
        limit: Most report items.
        rows: Most rows over all
            tasks.

    Returns:
        What it was called with.
    """
    return model, task, limit, search_options, task_options


def test_a_field_or_a_whole_class_can_be_given():
    """Keywords replace the fields of a class; fields that are not given have their defaults."""
    assert measure("m", "t", rows=7, num_fewshot=2) == (
        "m", "t", None, SearchOptions(rows=7), TaskOptions(num_fewshot=2),
    )  # fmt: skip
    preset = SearchOptions(rows=7, k=3)
    assert measure("m", search_options=preset)[3] is not None
    assert measure("m", search_options=preset, rows=9)[3] == SearchOptions(rows=9, k=3)
    assert measure("m", search_options=None)[3] == SearchOptions()


def test_an_excluded_field_belongs_to_the_verb():
    """An excluded field is no keyword; a class that is given as a whole may still hold it."""
    assert measure("m", limit=8) == ("m", "addition", 8, SearchOptions(), TaskOptions())
    preset = TaskOptions(limit=3, metric="acc")
    assert measure("m", limit=8, task_options=preset)[2:] == (8, SearchOptions(), preset)
    with pytest.raises(BadInput, match="`measure` has no parameter 'metric'"):
        measure("m", metric="acc")


def test_unknown_keywords_and_other_classes_are_refused():
    """An unknown keyword, a wrong class and a bad value are refused; the message names them."""
    with pytest.raises(BadInput, match="has no parameter 'row'; did you mean 'rows'"):
        measure("m", row=3)
    with pytest.raises(BadInput, match="`search_options` must be SearchOptions, not TaskOptions"):
        measure("m", search_options=TaskOptions())
    with pytest.raises(BadInput, match="`k` must be at least 1"):
        measure("m", k=0)


def test_the_signature_shows_every_field():
    """The signature lists all fields with default and annotation; option classes come last."""
    parameters = inspect.signature(measure).parameters
    names = [field.name for field in fields(SearchOptions)]
    assert list(parameters)[: 3 + len(names)] == ["model", "task", "limit", *names]
    assert list(parameters)[-2:] == ["search_options", "task_options"]
    assert (parameters["k"].default, parameters["k"].annotation) == (5, "int")
    assert parameters["options"].default == {}
    assert "metric" not in parameters
    assert groups_of(measure)["task_options"].cls is TaskOptions


def test_the_docstring_explains_every_parameter():
    """A parameter has its field's sentence unless the verb's docstring has one."""
    sentences = parameter_help(measure.__doc__)
    assert set(sentences) == set(inspect.signature(measure).parameters) - {"task"}
    assert sentences["rows"] == "Most rows over all tasks."
    assert sentences["k"] == field_help(SearchOptions)["k"]
    assert sentences["search_options"] == "The fields of SearchOptions as a whole."
    assert measure.__doc__.startswith("Measures something.\n\nArgs:\n    model: What")
    assert measure.__doc__.endswith("Returns:\n    What it was called with.\n")


def test_a_docstring_without_arguments_gets_them():
    """The arguments are inserted before the next section of the docstring."""

    @takes_options
    def count(*, search_options: Annotated[SearchOptions, without("options")]) -> int:
        """Counts.

        Raises:
            BadInput: Never.
        """
        return 0

    assert list(parameter_help(count.__doc__))[:2] == ["method", "rows"]
    assert count.__doc__.endswith("\n\nRaises:\n    BadInput: Never.\n")


def test_a_name_cannot_come_twice():
    """A field with the name of a parameter is refused, and so is excluding an unknown field."""

    def draw(limit: int = 3, *, task_options: TaskOptions) -> None:
        """Draws."""

    with pytest.raises(ValueError, match="`limit` of draw comes twice"):
        takes_options(draw)

    def shade(*, task_options: Annotated[TaskOptions, without("depth")]) -> None:
        """Shades."""

    with pytest.raises(ValueError, match="TaskOptions has no field depth"):
        takes_options(shade)


@takes_options
def run(
    model: str,
    *,
    run_options: Annotated[RunOptions, without("ablation_options", "reference")],
) -> RunOptions:
    """Runs something."""
    return run_options


def test_a_class_of_classes_gives_their_fields():
    """A part of the class can be given as a whole, by keywords or within the class."""
    assert run("m") == RunOptions()
    assert run("m", limit=3, lanes=2) == RunOptions(
        task_options=TaskOptions(limit=3), engine_options=EngineOptions(lanes=2)
    )
    preset = RunOptions(task_options=TaskOptions(limit=3, metric="acc"))
    assert run("m", run_options=preset) is not None
    assert run("m", run_options=preset, limit=4).task_options == TaskOptions(limit=4, metric="acc")
    assert run("m", run_options=preset, task_options=TaskOptions()) == RunOptions()
    shown = inspect.signature(run).parameters
    assert {"limit", "task_options", "run_options"} <= set(shown)


def test_what_a_verb_leaves_out_of_a_class_of_classes_is_no_keyword():
    """An excluded field or part is no keyword; excluding an unknown field is refused."""
    for name in ("reference", "scale", "ablation_options"):
        with pytest.raises(BadInput, match=f"`run` has no parameter '{name}'"):
            run("m", **{name: None})
    assert "ablation_options" not in groups_of(run)
    with pytest.raises(ValueError, match="RunOptions has no field x"):

        @takes_options
        def wrong(*, run_options: Annotated[RunOptions, without("x")]) -> None: ...


def test_options_within_a_workspace_measure_there():
    """`within` sets the journal to the workspace and keeps all other options."""
    options = RunOptions(journal_options=JournalOptions(keep_outputs=0.5))
    inside = options.within("a workspace")
    assert inside.journal_options == JournalOptions(journal="a workspace", keep_outputs=0.5)
    assert inside.within(None) == options


def test_a_call_within_a_verb_reports_nothing_by_itself():
    """Options for calls within a verb keep everything but the caller's report."""
    options = RunOptions(progress_options=ProgressOptions(on_progress=print))
    assert options.on_progress is print
    assert options.unreported() == RunOptions()
    assert options.within("a workspace").on_progress is None


def test_a_report_is_a_keyword_of_a_verb_that_measures():
    """`on_progress` reaches the verb in its run options, and replaces that of a whole group."""

    @takes_options
    def run(*, run_options: RunOptions) -> object:
        """Returns the report."""
        return run_options.on_progress

    options = RunOptions(progress_options=ProgressOptions(on_progress=print))
    assert run() is None
    assert run(on_progress=repr) is repr
    assert run(run_options=options) is print
    assert run(run_options=options, on_progress=repr) is repr
