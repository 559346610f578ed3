"""Task files that cannot be read are named with the place of the error."""

import json

import pytest

from broca.errors import TaskUnusable, UnknownName
from broca.tasks import Catalog, RequestTokenizer, TaskOptions
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


@pytest.mark.parametrize("kind", ["generation", "likelihood", "rolling"])
def test_empty_target_is_refused(folder, tokenizer, kind):
    """The item is named: nothing to measure, or a silent model would be right."""
    with pytest.raises(TaskUnusable, match=f"item 5 of task 'empty_{kind}' has an empty target"):
        Catalog(folder).load(f"empty_{kind}", tokenizer)


def test_chat_template_of_a_tokenizer_without_one_is_refused(folder, tokenizer):
    """The option is named."""
    with pytest.raises(Exception, match="`chat_template`: the model's tokenizer has no chat temp"):
        Catalog(folder).load("good", tokenizer, options=TaskOptions(chat_template=True))


def test_unknown_split_is_refused(folder, tokenizer):
    """With those that there are; the scored one cannot be searched on as well."""
    catalog = Catalog()
    with pytest.raises(TaskUnusable, match=r"'capitals' has no split 'dev' .*it has train"):
        catalog.load("capitals", tokenizer, options=TaskOptions(locate_split="dev"))
    with pytest.raises(TaskUnusable, match=r"no split 'test' beside the scored one \(test\)"):
        Catalog(folder).load("good", tokenizer, options=TaskOptions(locate_split="test"))


def test_control_without_the_split_is_cut_in_three(folder, tokenizer):
    """What is asked of the localized task is not asked of the others, and it is said."""
    benchmark = Catalog(folder).load(
        "good", tokenizer, options=TaskOptions(locate_split="train"), require_split=False
    )
    assert len(benchmark.split(items=5, seed=0).report) == 6
    assert "good has no split train" in benchmark.notes[0]


def test_locate_items_come_from_the_other_split(tokenizer):
    """Locate and confirm from `train`, report from all test documents."""
    benchmark = Catalog().load("capitals", tokenizer, options=TaskOptions(locate_split="train"))
    scored = Catalog().load("capitals", tokenizer)
    split = benchmark.split(items=30, seed=0)
    report = [benchmark.items[number].prompt for number in split.report]
    assert report == [item.prompt for item in scored.items]
    training = {one["prompt"] for one in scored._parts[0]._task.training_docs()}
    for part in (split.locate, split.confirm):
        assert len(part) == 30
        assert {benchmark.items[number].prompt for number in part} <= training
