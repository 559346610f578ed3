"""Whatever a task file says, it is a task or is refused in one line."""

import contextlib
import json

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from broca.errors import BrocaError
from broca.tasks import Catalog, RequestTokenizer
from broca.testing import tiny_tokenizer

KEYS = (
    "task", "dataset_path", "dataset_name", "dataset_kwargs", "test_split", "validation_split",
    "training_split", "fewshot_split", "output_type", "doc_to_text", "doc_to_target",
    "doc_to_choice", "target_delimiter", "fewshot_delimiter", "num_fewshot", "metric_list",
    "filter_list", "generation_kwargs", "repeats", "metadata", "process_docs", "process_results",
    "description", "fewshot_config", "include", "group", "tag", "should_decontaminate",
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "good", "test", "train", "json", "generate_until", "loglikelihood", "multiple_choice",
        "loglikelihood_rolling", "{{question}}", "{{answer}}", "{{", "{{question.a.b}}", "{% if %}",
        "acc", "exact_match", "mean", "good.yaml", "", "question", "answer", "first_n", "none", "a",
    ]
) | st.text(max_size=4)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(("metric", "aggregation", "name", "until")) | WORDS, inner
        )
    ),
    max_leaves=4,
)
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(scope="module")
def tokenizer():
    """A byte-level tokenizer."""
    return RequestTokenizer(tiny_tokenizer(), max_length=256)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data; what it holds alone is looked at."""
    manager = Catalog._manager
    monkeypatch.setattr(
        Catalog, "_manager", lambda self, path, *, defaults: manager(path, defaults=False)
    )
    documents = [{"question": f"{n} =", "answer": str(n)} for n in range(12)]
    (tmp_path / "good.jsonl").write_text("\n".join(map(json.dumps, documents)))
    return tmp_path


def read(folder, tokenizer, text):
    """Reads a task file as `localize` does; any error but broca's own comes through."""
    (folder / "good.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(BrocaError):
        benchmark = Catalog(folder).load("good", tokenizer)
        benchmark.split(items=4, seed=0)
        assert benchmark.items


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET, derandomize=True)
@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=3))
def test_a_changed_task_file_is_read_or_refused(folder, tokenizer, changes):
    """A good file with up to three settings replaced by anything."""
    content = {
        "task": "good",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(folder / "good.jsonl")}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "target_delimiter": "",
    }
    if changes.get("dataset_path") not in (None, "json"):
        changes["dataset_path"] = "json"  # other names would be looked up on the hub
    read(folder, tokenizer, yaml.safe_dump({**content, **changes}, allow_unicode=True))


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET, derandomize=True)
@given(text=st.text(max_size=30) | VALUES.map(yaml.safe_dump))
@example(text="task: good\ndoc_to_text: !function nothing.here\n")
@example(text="task: !!python/object/apply:os.getcwd []\n")
@example(text="&a [*a]")
@example(text="task: [good")
def test_any_text_as_a_task_file_is_refused(folder, tokenizer, text):
    """No text is a task by chance, and none ends in a traceback."""
    read(folder, tokenizer, text)
