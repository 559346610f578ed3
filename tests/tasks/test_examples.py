"""Tasks of the user's examples: accepted forms, and refusals with the place of the error."""

import json

import numpy as np
import pytest

import broca
from broca.errors import BadInput, TaskUnusable
from broca.tasks import Catalog, Generation, RequestTokenizer, Task
from broca.testing import tiny_tokenizer

PAIRS = [("2 + 2 =", " 4"), ("3 + 3 =", " 6")]
ROWS = [{"prompt": prompt, "answer": answer} for prompt, answer in PAIRS]
CHOICE = {"prompt": "sky is", "choices": [" red", " blue"], "label": 1}


@pytest.fixture
def write(tmp_path):
    """A function that writes lines into a file and returns its path."""

    def make(*lines):
        path = tmp_path / "own.jsonl"
        path.write_text(
            "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        )
        return path

    return make


def test_pairs_dictionaries_files_and_data_sets_are_the_same(write):
    """Pairs, dictionaries, iterators, files and data sets of the same examples are one task."""
    import datasets

    path = write(ROWS[0], "", ROWS[1])
    forms = [PAIRS, [list(pair) for pair in PAIRS], ROWS, iter(PAIRS), path, str(path)]
    forms.append(datasets.Dataset.from_list(ROWS))
    for form in forms:
        task = broca.Task.from_examples(form)
        assert task.examples == tuple(ROWS)
        assert task.kind == "generate_until"
    assert Task.from_examples(path).name == str(path)
    assert Task.from_examples(path, name="mine").name == "mine"
    assert Task.from_examples(PAIRS).name == "examples"


@pytest.mark.parametrize("label", [1, " blue", "blue"])
def test_a_label_is_an_index_or_the_text_of_a_choice(label):
    """A label may be an index, or a choice's text with or without its leading space."""
    task = Task.from_examples([{**CHOICE, "label": label}])
    assert (task.kind, task.examples[0]["label"]) == ("multiple_choice", 1)


def test_class_labels_of_a_data_set_are_indices():
    """A `ClassLabel` column of a data set gives the index."""
    import datasets

    features = datasets.Features(
        {
            "prompt": datasets.Value("string"),
            "choices": datasets.Sequence(datasets.Value("string")),
            "label": datasets.ClassLabel(names=["no", "yes"]),
        }
    )
    rows = datasets.Dataset.from_list([CHOICE], features=features)
    assert Task.from_examples(rows).examples == (CHOICE,)


def test_other_fields_are_kept_and_numbers_written_out():
    """Further fields of any type are kept, and an answer that is a number becomes text."""
    extra = {"paraphrases": ["two and two"], "source": {"page": 3}}
    (example,) = Task.from_examples([{"prompt": "2+2=", "answer": 4, **extra}]).examples
    assert example == {"prompt": "2+2=", "answer": "4", **extra}


def test_wordings_become_examples():
    """Paraphrases share content and answer; an example without them stays as it is."""
    rows = [{**ROWS[0], "paraphrases": ["two plus two is"], "content": "2+2"}, ROWS[1]]
    first, second, third = Task.from_examples(rows).by_wording().examples
    assert (first["prompt"], first["wording"], first["content"]) == ("2 + 2 =", "wording 0", "2+2")
    assert second == {**first, "prompt": "two plus two is", "wording": "wording 1"}
    assert third == ROWS[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON: "),
        ("[1, 2]", "is not a JSON object"),
        ({"prompt": "p"}, "has no `answer`"),
        ({"answer": "a"}, "has no `prompt`"),
        ({"prompt": "", "answer": "a"}, "has an empty `prompt`"),
        ({"prompt": "p", "answer": ["a"]}, "`answer` must be text, not list"),
        ({"prompt": "p", "answer": True}, "`answer` must be text, not bool"),
        ({"prompt": "p", "choices": ["a"], "label": 0}, "a list of two or more"),
        ({"prompt": "p", "choices": "ab", "label": 0}, "a list of two or more"),
        ({"prompt": "p", "choices": ["a", ""], "label": 0}, "has an empty `choices`"),
        ({"prompt": "p", "choices": ["a", "b"]}, "`label` must be the index .* not None"),
        ({"prompt": "p", "choices": ["a", "b"], "label": 2}, "from 0 to 1, .* not 2"),
        ({"prompt": "p", "choices": ["a", "b"], "label": "c"}, "not 'c'"),
        (CHOICE, "has `choices`, where those before it have `answer`"),
    ],
    ids=lambda value: None,
)
def test_a_bad_line_is_refused_by_its_number(write, line, message):
    """A bad line is refused in one line with its number and the error."""
    with pytest.raises(BadInput, match=message) as refused:
        Task.from_examples(write(ROWS[0], "", line))
    assert "line 3 of " in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_bad_example_is_refused_by_its_place():
    """A bad example of a list is refused with its index, which counts from 0."""
    for content in (("", "a"), ("p",), "text", 7):
        with pytest.raises(BadInput, match=r"^example 1[ :]"):
            Task.from_examples([PAIRS[0], content])


def test_what_holds_no_examples_is_refused(write, tmp_path):
    """A missing file, a folder, text that is not UTF-8, no rows and other types are refused."""
    with pytest.raises(BadInput, match=r"none.jsonl' cannot be read: No such file"):
        Task.from_examples(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        Task.from_examples(tmp_path)
    for empty in ([], write("", "")):
        with pytest.raises(TaskUnusable, match="has no examples"):
            Task.from_examples(empty)
    for wrong in ({"train": PAIRS}, 7, None):
        with pytest.raises(BadInput, match="`examples` must be a list"):
            Task.from_examples(wrong)


def test_settings_are_checked():
    """Bad settings are refused, and so are settings of examples on a named task."""
    assert Task.from_examples(PAIRS, until="\n").until == ("\n",)
    assert Task.from_examples(PAIRS, until=["\n", "."]).until == ("\n", ".")
    for settings, message in [
        ({"metric": 3}, "`metric` must be a name or a function"),
        ({"until": ""}, "`until` must be"),
        ({"until": ["a", ""]}, "`until` must be"),
        ({"max_new_tokens": 0}, "`max_new_tokens` must be at least 1"),
        ({"name": " "}, "`name` must be a task's name"),
    ]:
        with pytest.raises(BadInput, match=message):
            Task.from_examples(PAIRS, **settings)
    with pytest.raises(BadInput, match="are for examples"):
        Task("gsm8k", until="\n")
    with pytest.raises(BadInput, match=r"`Task\.from_examples` takes"):
        Task(PAIRS)


@pytest.mark.parametrize("until", ["\n", ()])
def test_an_empty_answer_is_right_for_a_model_that_says_nothing_more(until):
    """An empty answer is right for an empty generation, with the default stop string as well."""
    examples = [("1 =", "1"), ("stop", " "), ("2 =", "2")]
    task = Task.from_examples(examples, until=until)
    assert [example["answer"] for example in task.examples] == ["1", "", "2"]
    benchmark = Catalog().load(task, RequestTokenizer(tiny_tokenizer(), max_length=128))
    assert [item.target for item in benchmark.items] == ["1", "", "2"]
    assert all(item.requests[0].stop for item in benchmark.items)
    assert [benchmark.score(benchmark.items[1], (Generation(text, 1),)) for text in ("", "x")] == [
        1,
        0,
    ]


EXAMPLES = [{"prompt": "1 + 1 =", "answer": " 2"}, {"prompt": "é?", "answer": "ü"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("array.json", json.dumps(EXAMPLES).encode()),
        ("array.jsonl", json.dumps(EXAMPLES, indent=1).encode()),
        ("table.csv", 'prompt,answer\n1 + 1 =," 2"\né?,ü\n'.encode()),
        ("wide.jsonl", "\n".join(map(json.dumps, EXAMPLES)).encode("utf-16")),
        ("unmarked.jsonl", "\n".join(map(json.dumps, EXAMPLES)).encode("utf-16-le")),
        ("semicolons.CSV", 'prompt;answer\n1 + 1 =;" 2"\né?;ü\n'.encode("utf-8-sig")),
        ("tabs.tsv", "prompt\tanswer\n1 + 1 =\t 2\né?\tü\n".encode()),
        ("lines.ndjson", "\n".join(map(json.dumps, EXAMPLES)).encode()),
    ],
)
def test_arrays_tables_and_utf_16_are_examples(tmp_path, name, content):
    """A JSON array, a CSV table and UTF-16 text hold the same examples as JSON lines."""
    (tmp_path / name).write_bytes(content)
    assert list(Task.from_examples(tmp_path / name).examples) == EXAMPLES
    assert Catalog().is_own(str(tmp_path / name))


def test_a_table_has_choices_as_arrays(tmp_path):
    """Choices in a cell are a JSON array, and a label is an index."""
    (tmp_path / "t.csv").write_text('prompt,choices,label\nWhich?,"[""a"", ""b""]",1\n')
    (example,) = Task.from_examples(tmp_path / "t.csv").examples
    assert (example["choices"], example["label"]) == (["a", "b"], 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        ("l.jsonl", '{"prompt": "é", "answer": "a"}'.encode("latin-1"), "iconv -f latin1"),
        ("z.jsonl", b"\x1f\x8b\x08\x00\xff\xfe", "compressed with gzip: unpack it"),
        ("archive.zip", b"PK\x03\x04", "a zip archive or an Excel table"),
        ("t.parquet", b"PAR1\x15\x04", "a Parquet file"),
        ("h.jsonl", b"<!DOCTYPE html>\n<html>", "HTML or XML"),
        ("s.jsonl", b'{"prompt": "\\ud800", "answer": "a"}', "half of a pair of surrogates"),
        (
            "p2.jsonl",
            b'{"prompt": "a", "answer": "b", "paraphrases": ["\\ud800"]}',
            "`paraphrases` holds half of a pair of surrogates",
        ),
        ("o.json", b'{"data": [{"prompt": "a"}], "version": 1}', r"\(it has data, version\)"),
        ("n.csv", b"1 + 1 =,2\n2 + 2 =,4\n", r"has no `prompt` \(it has 1 \+ 1 =, 2\)"),
        (
            "i.csv",
            b'prompt,choices,label\np,"[""1"", ""2""]",1\n',
            "the index of one choice and the text of another",
        ),
        ("c.csv", b"prompt,answer\none\n", "another number of fields"),
        ("a.json", b'[{"prompt": "a"', "is not a JSON array"),
    ],
)
def test_other_files_are_said_to_be_what_they_are(tmp_path, name, content, message):
    """A file that holds no examples is refused in a line that says what it is."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message) as error:
        Catalog().require_names([str(tmp_path / name)])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_examples(library):
    """A DataFrame of pandas or polars, with NumPy labels and arrays, holds examples."""
    frame = pytest.importorskip(library).DataFrame(
        {"prompt": ["a?", "b?"], "choices": [["x", "y"], ["x", "y"]], "label": np.array([1, 0])}
    )
    task = Task.from_examples(frame)
    assert [example["label"] for example in task.examples] == [1, 0]
    assert task.examples[0]["choices"] == ["x", "y"]


def test_nothing_in_a_data_frame_and_arrays_of_numpy(tmp_path):
    """A cell without a value is no field, and arrays are pairs and labels."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"prompt": ["a?"], "answer": ["b"], "choices": [float("nan")]})
    assert Task.from_examples(frame).examples == ({"prompt": "a?", "answer": "b"},)
    assert (
        Task.from_examples(np.array([["a?", "b"]])).examples == Task.from_examples(frame).examples
    )
    labelled = {"prompt": "a?", "choices": np.array(["x", "y"]), "label": np.array(1)}
    assert Task.from_examples([labelled]).examples[0]["label"] == 1
