"""Tiny data sets with the splits of those that the paper uses, and the columns that are read.

`local_data` makes `datasets.load_dataset` read them where a task file of lm-eval names a data set
of the hub. Only the data are replaced: prompts, filters and metrics are those of lm-eval.
"""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

import datasets
from datasets import ClassLabel, Dataset

ROWS = 10
"""Number of documents in a split."""

WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "islet", "juniper")


def _gsm8k(split: str, row: int) -> dict:
    count = row + 2 + (split == "train")
    return {
        "question": f"{WORDS[row].title()} has {count} pens and buys 3 more. How many are there?",
        "answer": f"There are {count} + 3 = <<{count}+3={count + 3}>>{count + 3} pens.\n"
        f"#### {count + 3}",
    }


def _arithmetic(name: str, row: int) -> dict:
    """Returns a row of a file of the data set `EleutherAI/arithmetic`."""
    first, second = row + 2, 2 * row + 1
    word, answer = {
        "subtraction": ("minus", first - second),
        "multiplication": ("times", first * second),
    }.get(name.rpartition("_")[2], ("plus", first + second))
    return {"context": f"Q: What is {first} {word} {second}?\n\nA:", "completion": f" {answer}"}


def _mbpp(split: str, row: int) -> dict:
    return {
        "task_id": row + (11 if split == "test" else 601),
        "text": f"Write a function to add {row} to a number.",
        "code": f"def add_{row}(n):\r\n  return n + {row}",
        "test_list": [f"assert add_{row}({n}) == {n + row}" for n in (1, 5, 9)],
    }


def _humaneval(split: str, row: int) -> dict:
    return {
        "task_id": f"HumanEval/{row}",
        "prompt": f'def times_{row}(n: int) -> int:\n    """Multiply n by {row}.\n    """\n',
        "canonical_solution": f"    return n * {row}\n",
        "test": "\n\nMETADATA = {}\n\n\ndef check(candidate):\n"
        f"    assert candidate(3) == {3 * row}\n    assert candidate(0) == 0\n",
        "entry_point": f"times_{row}",
    }


def _hellaswag(split: str, row: int) -> dict:
    place = WORDS[row]
    return {
        "activity_label": f"Visiting a {place}", "ctx_a": f"A man walks to the {place}.",
        "ctx_b": "he", "label": str(row % 4),
        "endings": [f"{verb} at the {place}." for verb in ("sits down", "eats", "looks", "is")],
    }  # fmt: skip


def _boolq(split: str, row: int) -> dict:
    passage = f"The {WORDS[row]} is found in the {'north' if row % 2 else 'south'}."
    question = f"does the {WORDS[row]} grow in the north"
    return {"question": question, "passage": passage, "label": row % 2}


def _arc(split: str, row: int) -> dict:
    names = ("A", "B", "C", "D") if row % 3 else ("1", "2", "3", "4")
    texts = [WORDS[(row + n) % 10] + " tree" * ((n + row // 2) % 4) for n in range(4)]
    question, choices = f"Which of these is a {WORDS[row]}?", {"text": texts, "label": list(names)}
    return {"question": question, "choices": choices, "answerKey": names[(3 * row + 1) % 4]}


def _mmlu(split: str, row: int) -> dict:
    choices = [WORDS[(row + n + 1) % len(WORDS)] for n in range(4)]
    question = f"Which word comes after {WORDS[row]}?"
    return {"question": question, "choices": choices, "answer": row % 4}


def _wmdp(split: str, row: int) -> dict:
    choices = [f"It is {WORDS[(row + n) % len(WORDS)]}." for n in range(4)]
    question = f"What is known about the {WORDS[row]}?"
    return {"answer": (row + 1) % 4, "question": question, "choices": choices}


# path on the hub -> splits, function that makes a row
_HUB = {
    "openai/gsm8k": (("train", "test"), _gsm8k),
    "google-research-datasets/mbpp": (("train", "test", "validation", "prompt"), _mbpp),
    "openai/openai_humaneval": (("test",), _humaneval),
    "Rowan/hellaswag": (("train", "test", "validation"), _hellaswag),
    "aps/super_glue": (("train", "validation", "test"), _boolq),
    "allenai/ai2_arc": (("train", "test", "validation"), _arc),
    "cais/mmlu": (("auxiliary_train", "test", "validation", "dev"), _mmlu),
    "cais/wmdp": (("test",), _wmdp),
}

_LABELS = {
    "aps/super_glue": ("label", ["False", "True"]), "cais/mmlu": ("answer", ["A", "B", "C", "D"]),
}  # fmt: skip
"""Columns that hold the number of a class, and the names of the classes."""

_FEWER = {"cais/mmlu": 1, "openai/openai_humaneval": 8}
"""Number of documents in a split where subtasks are many or generations are long."""


def write_data(folder: Path) -> None:
    """Writes every data set of `_HUB` as parquet files, one for each split."""
    for path, (splits, row) in _HUB.items():
        (folder / path).mkdir(parents=True)
        for split in splits:
            data = Dataset.from_list([row(split, n) for n in range(_FEWER.get(path, ROWS))])
            if path in _LABELS:
                column, names = _LABELS[path]
                data = data.cast_column(column, ClassLabel(names=names))
            data.to_parquet(folder / path / f"{split}.parquet")


def local_data(folder: Path) -> AbstractContextManager:
    """Within the context, `datasets.load_dataset` reads what `write_data` wrote."""
    genuine = datasets.load_dataset

    def load_dataset(path, name=None, data_files=None, **options):
        if path in _HUB:
            files = {split: str(folder / path / f"{split}.parquet") for split in _HUB[path][0]}
            loaded = {split: Dataset.from_parquet(file) for split, file in files.items()}
            return datasets.DatasetDict(loaded)
        if path == "json" and data_files:
            files = {split: _local(str(file), folder) for split, file in data_files.items()}
            return genuine("json", name, data_files=files, cache_dir=str(folder / "cache"))
        return genuine(path, name, data_files=data_files, **options)

    return patch.object(datasets, "load_dataset", load_dataset)


def _local(file: str, folder: Path) -> str:
    """Returns a local file in place of an arithmetic file of the hub; other files stay."""
    if not file.startswith("hf://datasets/EleutherAI/arithmetic/"):
        return file
    name = Path(file).stem
    local = folder / f"{name}.jsonl"
    local.write_text("\n".join([json.dumps(_arithmetic(name, row)) for row in range(ROWS)]) + "\n")
    return str(local)
