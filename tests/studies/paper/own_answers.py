"""The paper's tasks on local data, labelled with the answers of a model of random weights.

The intact model is then always right, so that ablations cost it something. Prompts and metrics are
those of lm-eval.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import datasets
import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict
from harness_tasks import answers
from paper_data import WORDS

from broca.tasks import Catalog, RequestTokenizer

ROWS = 32
TASKS = ("boolq", "wmdp_bio", "wmdp_chem")
_NAMES = {"wmdp-bio": "wmdp_bio", "wmdp-chem": "wmdp_chem"}
Labels = dict[str, list[int]]
"""The right choice of every document, task by task."""


def _question(task: str, row: int) -> str:
    rng = np.random.default_rng([row, len(task), ord(task[-1])])
    return " ".join(rng.choice(WORDS, 3))


def _rows(task: str, labels: list[int]) -> Dataset:
    questions = [_question(task, row) for row in range(len(labels))]
    if task == "boolq":
        rows = [
            {"question": f"is it {question}", "passage": "", "idx": row, "label": labels[row]}
            for row, question in enumerate(questions)
        ]
        return Dataset.from_list(rows).cast_column("label", ClassLabel(names=["False", "True"]))
    return Dataset.from_list(
        [
            {"question": question, "choices": WORDS[row % 6 : row % 6 + 4], "answer": labels[row]}
            for row, question in enumerate(questions)
        ]
    )


@contextmanager
def local_data(labels: Labels) -> Iterator[None]:
    """Within the context, `datasets.load_dataset` returns these labels; gsm8k's are wrong."""
    genuine = datasets.load_dataset

    def load_dataset(path, name=None, **options):
        if path == "openai/gsm8k":
            rows = [{"question": WORDS[n % 10], "answer": "#### 7"} for n in range(ROWS)]
            return DatasetDict(train=Dataset.from_list(rows), test=Dataset.from_list(rows))
        if path == "aps/super_glue":
            data = _rows("boolq", labels["boolq"])
            return DatasetDict(train=data, validation=data)
        if path == "cais/wmdp":
            return DatasetDict(test=_rows(_NAMES[name], labels[_NAMES[name]]))
        return genuine(path, name, **options)

    datasets.load_dataset = load_dataset
    try:
        yield
    finally:
        datasets.load_dataset = genuine


def own_labels(model, catalog: Catalog) -> Labels:
    """Returns the intact model's choice for every question."""
    labels = {name: [0] * ROWS for name in TASKS}
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    with local_data(labels):
        loaded = {name: catalog.load(name, tokenizer) for name in TASKS}
        return {
            name: [
                int(np.argmax([output.value for output in outputs]))
                for outputs in answers(model, benchmark)
            ]
            for name, benchmark in loaded.items()
        }
