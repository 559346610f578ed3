"""Tasks of the user's examples and data sets: accepted forms, and refusals that name the place."""

import json

import datasets
import numpy as np
import pytest

from broca.errors import BadInput, TaskUnusable
from broca.tasks import Catalog, LogLikelihood, Task, TaskOptions
from broca.tasks.data_sets import read_data_set

PAIRS = [("2 + 2 =", " 4"), ("3 + 3 =", " 6")]
ROWS = [{"prompt": prompt, "answer": answer} for prompt, answer in PAIRS]
CHOICE = {"prompt": "sky is", "choices": [" red", " blue"], "label": 1}


@pytest.fixture
def write(tmp_path):
    """A function that writes the lines of a file, or its content in bytes, and returns its path."""

    def make(*lines, name="own.jsonl"):
        texts = [line if isinstance(line, str | bytes) else json.dumps(line) for line in lines]
        encoded = (text if isinstance(text, bytes) else text.encode() for text in texts)
        (tmp_path / name).write_bytes(b"\n".join(encoded))
        return tmp_path / name

    return make


def test_pairs_dictionaries_files_and_data_sets_are_the_same(write):
    """Pairs, dictionaries, iterators, files and data sets of the same examples are one task."""
    path = write(ROWS[0], "", ROWS[1])
    forms = [PAIRS, [list(pair) for pair in PAIRS], ROWS, iter(PAIRS), path, str(path)]
    for form in [*forms, np.array(PAIRS), datasets.Dataset.from_list(ROWS)]:
        task = Task.from_examples(form)
        assert task.examples == tuple(ROWS)
        assert task.kind == "generate_until"
    names = [Task.from_examples(form).name for form in (path, PAIRS)]
    assert names == [str(path), "examples"]


@pytest.mark.parametrize("label", [1, " blue", "blue", np.array(1), np.int64(1)])
def test_a_label_is_an_index_or_the_text_of_a_choice(label):
    """A label may be an index, or a choice's text with or without its leading space."""
    task = Task.from_examples([{**CHOICE, "choices": np.array(CHOICE["choices"]), "label": label}])
    assert (task.kind, task.examples) == ("multiple_choice", (CHOICE,))
    copies = {**CHOICE, "choices": [*CHOICE["choices"], " blue"], "label": 2}
    assert Task.from_examples([copies]).examples[0]["label"] == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_examples(library):
    """A DataFrame holds examples, a column does not; a cell without a value is no field."""
    columns = {name: [value] * 2 for name, value in CHOICE.items()}
    frame = pytest.importorskip(library).DataFrame(columns | {"answer": [float("nan")] * 2})
    assert Task.from_examples(frame).examples == (CHOICE, CHOICE)
    with pytest.raises(BadInput, match="example 0 is neither a pair"):
        Task.from_examples(frame["prompt"])


def test_other_fields_are_kept_and_numbers_written_out():
    """Further fields of any type are kept, and an answer that is a number becomes text."""
    given = {"prompt": "2+2=", "answer": 4, "source": {"page": 3}}
    assert Task.from_examples([given | {5: 6}]).examples == (given | {"answer": "4", "5": 6},)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON: "),
        ("[" * 100_000, "is not JSON: "),
        ('{"prompt": "p", "answer": ' + "9" * 6000 + "}", "is not JSON: "),
        ('{"prompt": "p", "answer": "\\ud800"}', "surrogates not allowed"),
        ({"prompt": "p"}, "has no `answer`"),
        ({"prompt": "", "answer": "a"}, "has an empty `prompt`"),
        ({"prompt": "p", "answer": True}, "`answer` must be text, not bool"),
        ({"prompt": "p", "choices": ["a"], "label": 0}, "a list of two or more"),
        ({"prompt": "p", "choices": ["a", ""], "label": 0}, "has an empty `choices`"),
        ({**CHOICE, "label": None}, "has no `label`"),
        *(({**CHOICE, "label": label}, f"to 1, .* not {label!r}") for label in (2, True, "c")),
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


def test_what_holds_no_examples_is_refused(write):
    """Bad examples of a list, no rows and other types are refused."""
    for content in (("", "a"), ("p",), "text", ("\ud800", "a")):
        with pytest.raises(BadInput, match=r"^example 1[ :]"):
            Task.from_examples([PAIRS[0], content])
    for empty in ([], write("", "")):
        with pytest.raises(TaskUnusable, match="has no examples"):
            Task.from_examples(empty)
    for wrong in ({"train": PAIRS}, None):
        with pytest.raises(BadInput, match="`examples` must be a list"):
            Task.from_examples(wrong)


def test_settings_are_checked():
    """Bad settings are refused, and so are settings of examples on a named task."""
    bad = {"metric": 3, "until": ["a", ""], "max_new_tokens": 0, "name": " "}
    for name, value in [*bad.items(), ("max_new_tokens", "5"), ("until", 3)]:
        with pytest.raises(BadInput, match=f"`{name}` must be"):
            Task.from_examples(PAIRS, **{name: value})
    with pytest.raises(BadInput, match="are for examples"):
        Task("gsm8k", until="\n")
    with pytest.raises(BadInput, match=r"`Task\.from_examples` takes"):
        Task(PAIRS)


EXAMPLES = [{"prompt": "1 + 1 =", "answer": " 2"}, {"prompt": "é?", "answer": " ü"}]
LINES = "\n".join(map(json.dumps, EXAMPLES))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("array.jsonl", json.dumps(EXAMPLES, indent=1).encode()),
        ("table.csv", 'prompt,answer\n1 + 1 =," 2"\né?, ü\n'.encode()),
        ("blank.csv", '\r\n\nprompt,answer\n1 + 1 =," 2"\né?, ü\n'.encode()),
        ("wide.jsonl", LINES.encode("utf-16")),
        ("unmarked.jsonl", LINES.encode("utf-16-le")),
        ("semicolons.CSV", 'prompt;answer\n1 + 1 =;" 2"\né?; ü\n'.encode("utf-8-sig")),
        ("tabs.tsv", "prompt\tanswer\n1 + 1 =\t 2\né?\t ü\n".encode()),
        ("pretty.json", "\n".join(json.dumps(row, indent=1) for row in EXAMPLES).encode()),
    ],
)
def test_arrays_tables_and_utf_16_are_examples(write, name, content):
    """Arrays, tables and UTF-16 hold the same examples as JSON lines, for `data:` too."""
    path = write(content, name=name)
    assert list(Task.from_examples(path).examples) == EXAMPLES
    assert Catalog().is_own(str(path))
    read = read_data_set(f"data:{path}").examples
    assert [{name: row[name] for name in ("prompt", "answer")} for row in read] == EXAMPLES


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.jsonl", '{"prompt": "é", "answer": "a"}'.encode("latin-1"), "is no text in UTF-8"),
        ("o.json", b'{"data": [{"prompt": "a"}], "version": 1}', r"\(it has data, version\)"),
        ("a.json", b'[{"prompt": "a",\n"answer": "b"}', "line 2 of .* is not JSON"),
        ("n.csv", b"1 + 1 =,2\n2 + 2 =,4\n", r"has no `prompt` \(it has 1 \+ 1 =, 2\)"),
        ("i.csv", b'prompt,choices,label\np,"[""1"", ""2""]",1\n', "a list of two or more"),
        (
            "c.csv",
            b"\nprompt,answer\n" + b"a" * 200_000 + b"\n",
            "line 3 .* another number of fields",
        ),
    ],
)
def test_other_files_are_refused(write, name, content, message):
    """A file that holds no examples is refused in a line that says where it fails."""
    with pytest.raises(BadInput, match=message) as error:
        Catalog().require_names([str(write(content, name=name))])
    assert "\n" not in str(error.value)


def test_a_data_set_is_a_task_of_the_catalog(write, tokenizer):
    """An item of a data set asks whether the answer, after a space, is the greedy one."""
    name = f"data:{write(*[{'prompt': f'p{n}', 'answer': f'a{n}'} for n in range(12)])}"
    catalog = Catalog()
    benchmark = catalog.load(name, tokenizer)
    assert (benchmark.name, benchmark.metric, len(benchmark.items)) == (name, "acc", 12)
    item = benchmark.items[3]
    assert item.requests == (tokenizer.loglikelihood("p3", " a3"),)
    scores = [benchmark.score(item, [LogLikelihood(-1, greedy)]) for greedy in (True, False)]
    assert scores == [1, 0]
    assert benchmark.margin(item).requests == item.requests
    assert len(catalog.load(name, tokenizer, options=TaskOptions(limit=5)).items) == 5


def test_class_labels_are_named(tmp_path):
    """Columns have the names in `fields`; answers are names of class labels, of no label empty."""
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    rows = {"text": ["good film", "film"], "label": [1, None]}
    data = datasets.Dataset.from_dict(rows, features=features)
    data.to_parquet(tmp_path / "train.parquet")
    fields = {"prompt": "text", "answer": "label"}
    labelled, other = read_data_set(f"data:{tmp_path}", fields=fields).examples
    assert (labelled, other["answer"]) == ({"prompt": "good film", "answer": " pos"}, "")


def test_data_that_cannot_be_read_are_refused(write):
    """Unknown columns, wrong fields, no rows, an unknown data set; empty texts answer nothing."""
    other = str(write({"a": 1, "b": 2}))
    with pytest.raises(BadInput, match="`fields`"):
        read_data_set(other)
    with pytest.raises(BadInput, match="has the columns"):
        read_data_set(other, fields={"prompt": "a", "answer": "c"})
    with pytest.raises(BadInput, match="could not be read"):
        read_data_set("data:nobody/has-this")
    with pytest.raises(TaskUnusable, match="has no rows"):
        read_data_set(str(write("")))
    asked = (("q", " "), ("q", None), ("q", float("nan")), ("", "a"))
    path = write(*({"prompt": prompt, "answer": answer} for prompt, answer in asked))
    assert {example["answer"] for example in read_data_set(str(path)).examples} == {""}


def test_the_shipped_example_is_a_file_by_its_name(tmp_path, monkeypatch):
    """`sums.jsonl` means the shipped file, unless the folder has one of that name."""
    monkeypatch.chdir(tmp_path)
    for example in Task.from_examples("sums.jsonl").examples:
        _, first, _, second, _ = example["prompt"].split()
        assert int(example["answer"]) == int(first) + int(second)
    (tmp_path / "sums.jsonl").write_text('{"prompt": "mine", "answer": "x"}')
    assert len(Task.from_examples("sums.jsonl").examples) == 1
