"""A tokenizer, tasks of every kind, and a folder with usable and unusable task files."""

import json

import pytest
from harness_tasks import write_tasks

from broca.tasks import Catalog, RequestTokenizer
from broca.testing import tiny_tokenizer

TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/{data}.jsonl}}}}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
target_delimiter: ""
"""


@pytest.fixture(scope="session")
def tokenizer():
    """A byte-level tokenizer without a chat template."""
    return RequestTokenizer(tiny_tokenizer(), max_length=1024)


@pytest.fixture(scope="session")
def catalog(tmp_path_factory):
    """A catalog with a task of every kind of lm-eval."""
    return Catalog(write_tasks(tmp_path_factory.mktemp("tasks")))


@pytest.fixture
def folder(tmp_path):
    """A good task, two files with errors, a task without data and three with an empty target."""
    documents = [{"question": f"{n} =", "answer": "" if n == 5 else str(n)} for n in range(9)]
    (tmp_path / "empty.jsonl").write_text("\n".join(map(json.dumps, documents)))
    good = [{"question": f"{n} =", "answer": str(n)} for n in range(10)]
    (tmp_path / "good.jsonl").write_text("\n".join(map(json.dumps, good)))
    for name, data, kind in (
        ("good", "good", "generate_until"),
        ("absent", "absent", "generate_until"),
        ("empty_generation", "empty", "generate_until"),
        ("empty_likelihood", "empty", "loglikelihood"),
        ("empty_rolling", "empty", "loglikelihood_rolling"),
    ):
        text = TASK.format(name=name, folder=tmp_path, data=data, kind=kind)
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "broken.yaml").write_text("task: broken\ndoc_to_text: 'a\nmetric_list: ]\n")
    (tmp_path / "child.yaml").write_text("task: child\ninclude: nothing.yaml\n")
    return tmp_path
