"""Any task file is either a task or refused with an error of broca."""

import contextlib
import dataclasses

import pytest
import yaml
from harness_tasks import write_task
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from lm_eval.api.task import TaskConfig

from broca.errors import BrocaError
from broca.tasks import Catalog, catalog

KEYS = [field.name for field in dataclasses.fields(TaskConfig)] + ["include", "group", "tag"]
WORDS = st.sampled_from(
    [
        "good", "test", "train", "json", "generate_until", "loglikelihood", "multiple_choice",
        "loglikelihood_rolling", "{{question}}", "{{answer}}", "{{", "{{question.a.b}}", "{% if %}",
        "acc", "exact_match", "mean", "good.yaml", "", "question", "answer", "first_n", "none", "a",
    ]
) | st.text(max_size=4)  # fmt: skip
NAMES = st.sampled_from(("metric", "aggregation", "name", "until")) | WORDS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner),
    max_leaves=4,
)
BOUNDED = settings(
    max_examples=25, deadline=None, derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # shrinking a failure takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data, which is the only place where tasks are looked for."""
    monkeypatch.setattr(catalog.task_index, "harness_entry", lambda name: None)
    monkeypatch.setattr(catalog.task_index, "harness_names", list)
    monkeypatch.chdir(tmp_path)  # a task without data files looks for them here
    write_task(tmp_path, "good", [{"question": f"{n} =", "answer": str(n)} for n in range(12)])
    return tmp_path


def read(folder, tokenizer):
    """Reads the task file and splits its items as `localize` does."""
    Catalog(folder).load("good", tokenizer).split(items=3, seed=0)


@BOUNDED
@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=3))
@example(changes={"task": None})
@example(changes={"task": 46, "filter_list": []})
@example(changes={"tag": [False, 10]})
@example(changes={"doc_to_text": "{% if %}"})
@example(changes={"metric_list": [{"metric": 3}]})
@example(changes={"filter_list": [{"name": "a", "filter": None}]})
@example(changes={"generation_kwargs": ["until"]})
def test_a_changed_task_file_is_read_or_refused(folder, tokenizer, changes):
    """A good file with up to three settings replaced is a task or raises a `BrocaError`."""
    if "dataset_path" in changes:
        changes["dataset_path"] = "json"  # other names would be looked up on the hub
    write_task(folder, "good", **changes)
    with contextlib.suppress(BrocaError):
        read(folder, tokenizer)


@BOUNDED
@given(text=st.text(max_size=30) | VALUES.map(yaml.safe_dump))
@example(text="task: good\ndoc_to_text: !function nothing.here\n")
@example(text="task: !!python/object/apply:os.getcwd []\n")
@example(text="&a [*a]")
@example(text="[" * 2000)
def test_any_text_as_a_task_file_is_refused(folder, tokenizer, text):
    """Arbitrary text and values raise a `BrocaError`."""
    (folder / "good.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BrocaError):
        read(folder, tokenizer)
