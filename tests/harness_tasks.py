"""Small lm-eval tasks of every output type, and the results of lm-eval on them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from broca.engine import Engine
from broca.testing import tiny_llama, tiny_tokenizer

WORDS = ("red", "blue", "green", "tiny", "large", "round", "old", "new", "warm", "cold", "slow")

GENERATION = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{train: {folder}/train.jsonl, test: {folder}/test.jsonl}}}}
{splits}
output_type: generate_until
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n\\n"], max_gen_toks: 12}}
{more}
"""
FILTERS = """filter_list:
  - name: strict-match
    filter: [{function: regex, regex_pattern: "#### ([a-z]+)"}, {function: take_first}]
  - name: flexible-extract
    filter: [{function: regex, group_select: -1, regex_pattern: "([a-z])"}, {function: take_first}]
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
CHOICE = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{train: {folder}/train.jsonl, test: {folder}/{test}.jsonl}}}}
training_split: train
test_split: test
fewshot_split: train
output_type: multiple_choice
doc_to_text: "{{{{question}}}} is"
doc_to_target: label
doc_to_choice: choices
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
{more}
"""
NORM = "  - {metric: acc_norm, aggregation: mean, higher_is_better: true}\n"
MUTUAL = "  - {metric: acc_mutual_info, aggregation: mean, higher_is_better: true}\n"
INPUTS = """
task: inputs
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/test.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{label}}}}"
doc_to_target: "{{{{question}}}}"
doc_to_choice: choices
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
"""
LIKELIHOOD = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/test.jsonl}}}}
test_split: test
output_type: {kind}
doc_to_text: "{text}"
doc_to_target: "{target}"
metric_list:
{metrics}
"""
GROUP = """
group: {name}
task: [{members}]
aggregate_metric_list:
  - {{metric: acc, weight_by_size: {weighted}{more}}}
"""


def tokenizer_with(special=(), *, eos="<eos>", merges=()):
    """A byte-level tokenizer of the tiny model in which some tokens are special, by their number.

    Args:
        special: Names of special tokens and their numbers, whose bytes are lost.
        eos: The end of sequence.
        merges: Pairs that become one token, with the numbers of the last bytes.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    by_number = {0: "<bos>", 1: "<eos>"} | dict(enumerate(alphabet, start=2))
    by_number |= {257 - place: first + second for place, (first, second) in enumerate(merges)}
    by_number |= {number: name for name, number in dict(special).items()}
    backend = Tokenizer(
        models.BPE(vocab={symbol: n for n, symbol in by_number.items()}, merges=list(merges))
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<bos>", eos_token=eos, pad_token="<bos>",
        additional_special_tokens=list(dict(special)),
    )  # fmt: skip


def write_tasks(folder: Path) -> Path:
    """Writes tasks with 12 training and 24 test documents (10 in the task `few`)."""
    rng = random.Random(0)

    def document(number: int) -> dict[str, object]:
        choices = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(4)]
        return {
            "question": f"{number} {' '.join(rng.choices(WORDS, k=2))}",
            "answer": rng.choice(WORDS),
            "choices": choices,
            "label": rng.randrange(4),
            "text": " ".join(rng.choices(WORDS, k=rng.randint(1, 160))),
        }

    for name, count in (("train", 12), ("test", 24), ("few", 10)):
        lines = (json.dumps(document(number)) for number in range(count))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    train = "training_split: train\ntest_split: test\nfewshot_split: train"
    perplexities = "".join(
        f"  - {{metric: {name}, aggregation: {how}, higher_is_better: false}}\n"
        for name, how in (
            ("word_perplexity", "weighted_perplexity"),
            ("byte_perplexity", "weighted_perplexity"),
            ("bits_per_byte", "bits_per_byte"),
        )
    )
    last = "  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}\n"
    last += "  - {metric: acc, aggregation: mean, higher_is_better: true}\n"
    texts = {
        "generation": GENERATION.format(
            name="generation", folder=folder, splits=train, more=FILTERS
        ),
        "same_split": GENERATION.format(
            name="same_split", folder=folder, splits="test_split: test", more=FILTERS
        ),
        "choice": CHOICE.format(name="choice", folder=folder, test="test", more=NORM),
        "mutual": CHOICE.format(name="mutual", folder=folder, test="test", more=MUTUAL),
        "few": CHOICE.format(name="few", folder=folder, test="few", more=""),
        "inputs": INPUTS.format(folder=folder),
        "rolling": LIKELIHOOD.format(
            name="rolling", folder=folder, kind="loglikelihood_rolling", text="",
            target="{{text}}", metrics=perplexities,
        ),
        "last_word": LIKELIHOOD.format(
            name="last_word", folder=folder, kind="loglikelihood", text="{{question}}",
            target=" {{answer}}", metrics=last,
        ),
        "pair": GROUP.format(name="pair", members="choice, few", weighted="true", more=""),
        "even": GROUP.format(
            name="even", members="choice, few", weighted="false", more=", filter_list: none"
        ),
        "nested": GROUP.format(name="nested", members="pair, inputs", weighted="false", more=""),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def write_tasks_and_model(folder: Path) -> Path:
    """Writes the tasks to a folder and a tiny model to its subfolder `model`."""
    write_tasks(folder)
    tiny_llama().save_pretrained(folder / "model")
    tiny_tokenizer().save_pretrained(folder / "model")
    return folder


def harness_results(model, tokenizer, names, *, folder, **options):
    """Returns the results of lm-eval with its model class `hf`."""
    return simple_evaluate(
        HFLM(pretrained=model, tokenizer=tokenizer, batch_size=8),
        tasks=list(names),
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        bootstrap_iters=0,
        log_samples=True,
        **options,
    )


def answers(model, benchmark, items=None):
    """Returns the engine's outputs for every item of a benchmark on the intact model."""
    items = benchmark.items if items is None else items
    requests = [request for item in items for request in item.requests]
    gates = np.ones((1, len(model.components)), dtype=np.float32)
    outputs = Engine(model).run(requests, gates, np.zeros(len(requests), dtype=int))
    by_item, start = [], 0
    for item in items:
        by_item.append(outputs[start : start + len(item.requests)])
        start += len(item.requests)
    return by_item
