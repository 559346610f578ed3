"""Task files that cannot be read are named with the place of the error."""

import json

import pytest

from broca.errors import TaskUnusable, UnknownName
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


@pytest.fixture
def tokenizer():
    """A byte-level tokenizer without a chat template."""
    return RequestTokenizer(tiny_tokenizer(), max_length=1024)


@pytest.fixture
def folder(tmp_path):
    """A good task, one with a syntax error, one without data, and three with an empty target."""
    documents = [{"question": f"{n} =", "answer": "" if n == 5 else str(n)} for n in range(9)]
    (tmp_path / "empty.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (tmp_path / "good.jsonl").write_text("\n".join(map(json.dumps, documents[:5] * 2)))
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


def test_syntax_error_is_refused_with_its_line(folder, tokenizer):
    """lm-eval alone would say that the task does not exist."""
    with pytest.raises(TaskUnusable, match=r"broken\.yaml' cannot be read: line \d+, column \d+"):
        Catalog(folder).load("broken", tokenizer)


def test_missing_include_is_refused(folder, tokenizer):
    """The file that includes it is named."""
    with pytest.raises(TaskUnusable, match=r"child\.yaml' cannot be read"):
        Catalog(folder).load("child", tokenizer)


def test_folder_of_broken_files_is_refused(tmp_path):
    """It holds no task, because of the syntax error."""
    (tmp_path / "broken.yaml").write_text("task: [")
    with pytest.raises(TaskUnusable, match=r"broken\.yaml' cannot be read: line \d"):
        Catalog(tmp_path)


def test_good_task_beside_broken_files_is_loaded(folder, tokenizer):
    """They are in nobody's way."""
    assert len(Catalog(folder).load("good", tokenizer).items) == 10


def test_unknown_task_names_the_file_that_could_not_be_read(folder, tokenizer):
    """The name may be in there."""
    with pytest.raises(UnknownName, match=r"task 'godo' is unknown; did you mean 'good'.*broken"):
        Catalog(folder).load("godo", tokenizer)


def test_missing_data_file_is_refused(folder, tokenizer):
    """The file is named."""
    with pytest.raises(TaskUnusable, match=r"'absent' could not.*absent\.jsonl.*check the paths"):
        Catalog(folder).load("absent", tokenizer)
