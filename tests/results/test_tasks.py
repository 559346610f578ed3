"""The list of tasks and the description of a task."""

from broca.results.tasks import PaperTask, TaskDescription, TaskList


def make_list():
    """Returns a list with a task of the package, a group of a folder and a task of the paper."""
    return TaskList(
        shipped=("addition",),
        instruct=(),
        included=(),
        included_groups=("all",),
        paper=(PaperTask("boolq", "acc", "general", "aps/super_glue"),),
        groups={"general": ("boolq",)},
    )


def make_description():
    """Returns the description of a task of two items."""
    return TaskDescription(
        name="addition", tasks=("addition",), request_kind="generate_until", items=2,
        metric="exact_match", metrics=("exact_match",), chance=0.0, requests=2, prompt_tokens=9,
        cut_items=0, notes=(), first_prompt="1 + 1 =", first_target=" 2",
    )  # fmt: skip


def test_tasks_are_listed_by_origin():
    """Names are those that need no download; lines and summary have the paper's tasks too."""
    tasks = make_list()
    assert tasks.names == ("addition", "all")
    assert [tuple(line.values()) for line in tasks.records()] == [
        ("addition", "shipped"), ("all", "included_groups"), ("boolq", "paper"),
    ]  # fmt: skip
    assert tasks.summary() == ("shipped: addition", "of the folder: all", "of the paper: boolq")


def test_a_description_is_one_line_without_its_origin():
    """The line starts with the task's name: version, schema and kind are those of the file."""
    (line,) = make_description().records()
    assert list(line)[:3] == ["name", "tasks", "request_kind"]
    assert "'1 + 1 ='" in repr(make_description())
