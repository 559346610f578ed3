"""Option classes become keywords of a verb."""

import inspect
from dataclasses import fields
from typing import Annotated

import numpy as np
import pytest
import torch

from broca.errors import BadInput
from broca.options import (
    EngineOptions,
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


@pytest.mark.parametrize(
    "kind", [np.int64, np.int32, np.uint8, np.array, torch.tensor], ids=lambda kind: kind.__name__
)
def test_numbers_of_numpy_and_torch_are_numbers_of_python(kind):
    """Parameters, fields and fields of classes that are given as a whole are Python's numbers."""
    preset = SearchOptions(k=kind(4))
    *_, limit, search, task = measure(
        "m", limit=kind(3), rows=kind(7), num_fewshot=kind(2), search_options=preset
    )
    numbers = (limit, search.rows, search.k, task.num_fewshot)
    assert numbers == (3, 7, 4, 2)
    assert {type(number) for number in numbers} == {int}
    task = measure("m", chat_template=np.True_)[4]
    assert task.chat_template is True


@pytest.mark.parametrize("value", ["7", 7.0, np.float32(7), np.array([7]), [7]], ids=repr)
def test_what_is_no_whole_number_is_refused(value):
    """Texts, fractions and lists are one line that names the parameter and the type."""
    for name in ("rows", "limit", "num_fewshot"):
        with pytest.raises(BadInput, match=rf"^`{name}` must be a whole number, not .* \("):
            measure("m", **{name: value})
    with pytest.raises(BadInput, match=r"^`k` must be a whole number, not 4\.0 \(float\)"):
        measure("m", search_options=SearchOptions(k=4.0))
    with pytest.raises(BadInput, match=r"^`max_minutes` must be a number, not 'x' \(str\)"):
        measure("m", max_minutes="x")


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
