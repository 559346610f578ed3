"""Data sets in the schemas of the paper's, read offline."""

import json

import pytest

from broca.errors import BadInput, TaskUnusable
from broca.neurons import load_texts
from broca.neurons.corpora import CORPORA

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
    """Writes rows as JSON lines."""

    def make(*rows):
        path = tmp_path / "data.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return str(path)

    return make


@pytest.mark.parametrize("name", ROWS)
def test_known_columns_become_questions(write, name):
    """Prompt, answer and paraphrases of every schema; paraphrases share their content."""
    fields = {"prompt": "problem", "answer": "solution"} if name == "code" else {}
    texts, _ = load_texts(f"data:{write(ROWS[name])}", fields=fields)
    assert [(text.prompt, text.answer) for text in texts] == EXPECTED[name]
    assert len({text.content for text in texts}) == 1


def test_own_data_may_have_paraphrases(write):
    """JSON lines of prompt, answer and paraphrases; rows are limited where wanted."""
    row = {"prompt": "p", "answer": "a", "paraphrases": ["q", "r"]}
    texts, capability = load_texts(write(row, {**row, "prompt": "s"}), limit=1)
    assert [text.prompt for text in texts] == ["p", "q", "r"]
    assert [text.wording for text in texts] == ["wording 0", "wording 1", "wording 2"]
    assert capability.endswith("data.jsonl")


def test_class_labels_are_named(tmp_path):
    """A data set saved with label names, as the hub's have them, answers with the names."""
    import datasets

    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    data = datasets.Dataset.from_dict({"text": ["good film"], "label": [1]}, features=features)
    folder = tmp_path / "imdb"
    folder.mkdir()
    data.to_parquet(folder / "train.parquet")
    texts, _ = load_texts(f"data:{folder}")
    assert [text.answer for text in texts] == ["pos"]


def test_what_cannot_be_read_is_refused(write, tmp_path):
    """Unknown columns, wrong fields, no rows, no such data set: one line each."""
    with pytest.raises(BadInput, match="--fields"):
        load_texts(write({"a": 1, "b": 2}))
    with pytest.raises(BadInput, match="has the columns"):
        load_texts(write({"a": 1, "b": 2}), fields={"prompt": "a", "answer": "c"})
    with pytest.raises(BadInput, match="could not be read"):
        load_texts("data:nobody/has-this")
    with pytest.raises((TaskUnusable, BadInput)):
        load_texts(write())


def test_the_papers_data_sets_have_short_names():
    """Those whose id on the hub is certain."""
    assert set(CORPORA) == {"gsm8k", "metamath", "emotion", "imdb", "counterfact"}
