"""The paper's tasks on local data, labelled with the answers of a model of random weights.

The intact model is then always right, so that ablations cost it something. Prompts and metrics are
those of lm-eval.
"""

from unittest.mock import patch

import datasets
import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict
from harness_tasks import answers
from paper_data import WORDS

from broca.tasks import RequestTokenizer

ROWS = 32
TASKS = ("boolq", "wmdp_bio", "wmdp_chem")
WRONG = [{"question": WORDS[n % 10], "answer": "#### 7"} for n in range(ROWS)]
"""Documents of gsm8k, which the model answers wrongly."""


def documents(task, labels):
    """Returns the documents of a task with these labels."""
    rows = []
    for row, label in enumerate(labels):
        rng = np.random.default_rng([row, len(task), ord(task[-1])])
        question = " ".join(rng.choice(WORDS, 3))
        if task == "boolq":
            asked = {"question": f"is it {question}", "passage": ""}
            rows.append(asked | {"idx": row, "label": label})
        else:
            choices = WORDS[row % 6 : row % 6 + 4]
            rows.append({"question": question, "choices": choices, "answer": label})
    return Dataset.from_list(rows)


def local_data(labels):
    """Within the context, `datasets.load_dataset` returns these labels, task by task."""
    genuine = datasets.load_dataset
    classes = ClassLabel(names=["False", "True"])

    def load_dataset(path, name=None, **options):
        if path == "openai/gsm8k":
            data = Dataset.from_list(WRONG)
        elif path == "aps/super_glue":
            data = documents("boolq", labels["boolq"]).cast_column("label", classes)
        elif path == "cais/wmdp":
            task = name.replace("-", "_")
            data = documents(task, labels[task])
        else:
            return genuine(path, name, **options)
        return DatasetDict(train=data, validation=data, test=data)

    return patch.object(datasets, "load_dataset", load_dataset)


def own_labels(model, catalog):
    """Returns the intact model's choice for every question."""
    labels = {name: [0] * ROWS for name in TASKS}
    tokenizer = RequestTokenizer.of(model)

    def chosen(benchmark):
        values = ([output.value for output in outputs] for outputs in answers(model, benchmark))
        return [int(np.argmax(of_item)) for of_item in values]

    with local_data(labels):
        return {name: chosen(catalog.load(name, tokenizer)) for name in TASKS}
