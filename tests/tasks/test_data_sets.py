"""Data sets in the schemas of the paper's data sets, read offline."""

import json

import pytest

from broca.errors import BadInput, TaskUnusable
from broca.tasks import Catalog, LogLikelihood, RequestTokenizer, TaskOptions
from broca.tasks.data_sets import read_data_set
from broca.testing import tiny_tokenizer

ROWS = {
    "gsm8k": {"question": "Two and two?", "answer": "2 + 2 = <<2+2=4>>4\n#### 4"},
    "metamath": {"query": "Two?", "response": "Two. The answer is: 2", "type": "GSM_Rephrased"},
    "counterfact": {
        "case_id": 1,
        "requested_rewrite": {
            "prompt": "The mother tongue of {} is", "subject": "Ada", "relation_id": "P103",
            "target_new": {"str": "French", "id": "Q1"},
            "target_true": {"str": "English", "id": "Q2"},
        },
        "paraphrase_prompts": ["So it rained. Ada, a native", "Ada spoke the language"],
    },
    "zsre": {
        "subject": "Ada", "src": "Where was Ada born?", "pred": "Paris",
        "rephrase": "What is Ada's place of birth?", "alt": "Rome", "answers": ["London"],
    },
    "emotion": {"text": "i feel fine", "label": "joy"},
    "code": {"problem": "add two numbers", "solution": "a + b"},
}  # fmt: skip
EXPECTED = {
    "gsm8k": [("Question: Two and two?\nAnswer:", "2 + 2 = 4\n#### 4")],
    "metamath": [("Question: Two?\nAnswer:", "Two. The answer is: 2")],
    "counterfact": [
        ("The mother tongue of Ada is", "English"),
        ("So it rained. Ada, a native", "English"),
        ("Ada spoke the language", "English"),
    ],
    "zsre": [("Where was Ada born?", "London"), ("What is Ada's place of birth?", "London")],
    "emotion": [("i feel fine\nLabel:", "joy")],
    "code": [("add two numbers", "a + b")],
}


@pytest.fixture
def write(tmp_path):
    """A function that writes rows as JSON lines and returns the path."""

    def make(*rows):
        path = tmp_path / "data.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return str(path)

    return make


@pytest.mark.parametrize("name", ROWS)
def test_known_columns_become_examples(write, name):
    """Columns of every schema become prompts, answers and paraphrases with one content."""
    fields = {"prompt": "problem", "answer": "solution"} if name == "code" else {}
    worded = read_data_set(f"data:{write(ROWS[name])}", fields=fields).by_wording().examples
    expected = [(prompt, f" {answer}") for prompt, answer in EXPECTED[name]]
    assert [(example["prompt"], example["answer"]) for example in worded] == expected
    assert len({example["content"] for example in worded}) == 1


def test_a_data_set_is_a_task_of_the_catalog(write):
    """An item of a data set asks whether the answer, after a space, is the greedy one."""
    name = f"data:{write(*[{'prompt': f'p{n}', 'answer': f'a{n}'} for n in range(12)])}"
    tokenizer = RequestTokenizer(tiny_tokenizer(), max_length=64)
    catalog = Catalog()
    benchmark = catalog.load(name, tokenizer)
    assert (benchmark.name, benchmark.metric, len(benchmark.items)) == (name, "acc", 12)
    item = benchmark.items[3]
    assert item.requests == (tokenizer.loglikelihood("p3", " a3"),)
    assert benchmark.score(item, [LogLikelihood(-1.0, True)]) == 1.0
    assert benchmark.score(item, [LogLikelihood(-1.0, False)]) == 0.0
    assert benchmark.margin(item).requests == item.requests
    assert benchmark.document(item)["content"] == "p3"
    assert len(catalog.load(name, tokenizer, options=TaskOptions(limit=5)).items) == 5


def test_class_labels_are_named(tmp_path):
    """The answers of a data set with class labels are the labels' names."""
    import datasets

    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    data = datasets.Dataset.from_dict({"text": ["good film"], "label": [1]}, features=features)
    folder = tmp_path / "imdb"
    folder.mkdir()
    data.to_parquet(folder / "train.parquet")
    (example,) = read_data_set(f"data:{folder}").examples
    assert example["answer"] == " pos"


def test_what_cannot_be_read_is_refused(write, tmp_path):
    """Unknown columns, wrong fields, no rows and an unknown data set are refused."""
    with pytest.raises(BadInput, match="`fields`"):
        read_data_set(write({"a": 1, "b": 2}))
    with pytest.raises(BadInput, match="has the columns"):
        read_data_set(write({"a": 1, "b": 2}), fields={"prompt": "a", "answer": "c"})
    with pytest.raises(BadInput, match="could not be read"):
        read_data_set("data:nobody/has-this")
    with pytest.raises((TaskUnusable, BadInput)):
        read_data_set(write())


def test_an_empty_answer_stays_empty(write):
    """An answer of white space becomes empty and gets no leading space."""
    rows = ({"prompt": "p", "answer": "a"}, {"prompt": "q", "answer": " "})
    first, second = read_data_set(write(*rows)).examples
    assert (first["answer"], second["answer"]) == (" a", "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.json", json.dumps([{"prompt": "a?", "answer": "b"}]).encode()),
        ("d.csv", b"prompt,answer\na?,b\n"),
        ("d.jsonl", '{"prompt": "a?", "answer": "b"}'.encode("utf-16")),
    ],
)
def test_files_of_data_sets_are_those_of_examples(tmp_path, name, content):
    """`data:` reads arrays, tables and UTF-16, and says what another file is."""
    (tmp_path / name).write_bytes(content)
    (example,) = read_data_set(str(tmp_path / name)).examples
    assert (example["prompt"], example["answer"]) == ("a?", " b")
    (tmp_path / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(BadInput, match="git lfs pull"):
        read_data_set(str(tmp_path / name))
