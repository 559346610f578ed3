"""Small lm-eval tasks of every output type, and the results of lm-eval on them."""

import json
import random
from itertools import islice
from pathlib import Path

import numpy as np
import yaml
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tiny import save_tiny

from broca.engine import Engine

WORDS = ("red", "blue", "green", "tiny", "large", "round", "old", "new", "warm", "cold", "slow")

FILTERS = [
    {"name": name, "filter": [{"function": "regex", **settings}, {"function": "take_first"}]}
    for name, settings in (
        ("strict-match", {"regex_pattern": "#### ([a-z]+)"}),
        ("flexible-extract", {"regex_pattern": "([a-z])", "group_select": -1}),
    )
]


def write_task(folder: Path, name: str, documents=None, **settings) -> None:
    """Writes a task, by default of generations, and its documents; without them it has no data."""
    data = folder / f"{name}.jsonl"
    if documents is not None:
        data.write_text("\n".join(map(json.dumps, documents)))
    content = {
        "task": name, "dataset_path": "json", "test_split": "test",
        "dataset_kwargs": {"data_files": {"test": str(data)}}, "output_type": "generate_until",
        "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}", "target_delimiter": "",
    }  # fmt: skip
    text = yaml.safe_dump({**content, **settings}, sort_keys=False, allow_unicode=True)
    (folder / f"{name}.yaml").write_text(text)


def write_tasks(folder: Path) -> Path:
    """Writes tasks with 12 training and 24 test documents (10 in the task `few`)."""
    rng = random.Random(0)

    def document(number: int) -> dict[str, object]:
        choices = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(4)]
        return {
            "question": f"{number} {' '.join(rng.choices(WORDS, k=2))}",
            "answer": rng.choice(WORDS), "choices": choices, "label": rng.randrange(4),
            "text": " ".join(rng.choices(WORDS, k=rng.randint(1, 160))),
        }  # fmt: skip

    for name, count in (("train", 12), ("test", 24), ("few", 10)):
        lines = (json.dumps(document(number)) for number in range(count))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")

    def task(name, output_type, text, target, *metrics, data=("train", "test"), **fields):
        """Writes a task whose metrics are a name and its aggregation."""
        splits = ("train", "test")[-len(data) :]
        files = {split: f"{folder}/{file}.jsonl" for split, file in zip(splits, data, strict=True)}
        listed = [{"metric": metric, "aggregation": how} for metric, how in metrics]
        made = {"doc_to_text": text, "doc_to_target": target, "metric_list": listed}
        made |= {"dataset_kwargs": {"data_files": files}, "target_delimiter": " "} | fields
        write_task(folder, name, output_type=output_type, **made)

    fewshot = {"training_split": "train", "fewshot_split": "train"}
    names = ("acc", "acc_norm", "acc_mutual_info", "exact_match", "mcc")
    means = {name: (name, "matthews_corrcoef" if name == "mcc" else "mean") for name in names}
    for name, split in (("generation", fewshot), ("same_split", {})):
        task(
            name, "generate_until", "Q: {{question}}\nA:", "{{answer}}", means["exact_match"],
            generation_kwargs={"until": ["\n\n"], "max_gen_toks": 12}, filter_list=FILTERS, **split,
        )  # fmt: skip
    for name, file, *metrics in (
        ("choice", "test", "acc", "acc_norm"),
        ("mutual", "test", "acc", "acc_mutual_info"),
        ("few", "few", "mcc", "acc"),
    ):
        task(
            name, "multiple_choice", "{{question}} is", "label", *map(means.get, metrics),
            data=("train", file), doc_to_choice="choices", **fewshot,
        )  # fmt: skip
    task(
        "inputs", "multiple_choice", "{{label}}", "{{question}}", means["acc"], data=("test",),
        doc_to_choice="choices",
    )  # fmt: skip
    task(
        "rolling", "loglikelihood_rolling", "", "{{text}}",
        ("word_perplexity", "weighted_perplexity"), ("byte_perplexity", "weighted_perplexity"),
        ("bits_per_byte", "bits_per_byte"), data=("test",),
    )  # fmt: skip
    task(
        "last_word", "loglikelihood", "{{question}}", " {{answer}}", ("perplexity", "perplexity"),
        means["acc"], data=("test",),
    )  # fmt: skip
    for name, members, weighted, more in (
        ("pair", ["choice", "few"], True, {}),
        ("nested", ["pair", "inputs"], False, {"filter_list": "none"}),
    ):
        aggregated = [{"metric": "acc", "weight_by_size": weighted, **more}]
        group = {"group": name, "task": members, "aggregate_metric_list": aggregated}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(group))
    return folder


def write_tasks_and_model(folder: Path) -> Path:
    """Writes the tasks to a folder and a tiny model to its subfolder `model`."""
    write_tasks(folder)
    save_tiny(folder / "model")
    return folder


def harness_results(model, tokenizer, names, *, folder, **options):
    """Returns the results of lm-eval with its model class `hf`."""
    hf = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=8)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    return simple_evaluate(
        hf, tasks=list(names), task_manager=manager, bootstrap_iters=0, log_samples=True, **options
    )


def answers(model, benchmark, items=None):
    """Returns the engine's outputs for every item of a benchmark on the intact model."""
    items = benchmark.items if items is None else items
    requests = [request for item in items for request in item.requests]
    gates = np.ones((1, len(model.components)), dtype=np.float32)
    outputs = iter(Engine(model).run(requests, gates, np.zeros(len(requests), dtype=int)))
    return [list(islice(outputs, len(item.requests))) for item in items]
