"""Held-out accuracy under any gates, in one forward pass a question.

Greedy decoding gives the expected answer exactly when every answer token, <eos> included, is the
most likely one after the tokens before it; so exact match needs no decoding. Options of a
multiple-choice question are compared by the letter's probability, as lm-eval does.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import torch
from batches import Batch, collate
from gating import gated
from generators import TASKS, Item
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

_DATA = Path(__file__).parents[1] / "src/broca/tasks/shipped/data"


@functools.cache
def held_out(name: str, split: str = "test") -> list[Item]:
    """Return the items of a task as they are shipped."""
    lines = (_DATA / name / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Item(row["prompt"], row["answer"], "") for row in map(json.loads, lines)]


def task_batches(
    tokenizer: PreTrainedTokenizerBase, name: str, count: int, skip: int = 0
) -> list[Batch]:
    """Return a task's held-out items from `skip` on, in batches of similar length."""
    number = [task.name for task in TASKS].index(name)
    items = [(number, item) for item in held_out(name)[skip : skip + count]]
    return list(collate(tokenizer, items, chunks=max(1, len(items) // 150)))


@torch.no_grad()
def score(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
    batches: list[Batch],
    gates: torch.Tensor | None = None,
) -> float:
    """Return the share of exact answers, under gates (layers, heads) if given."""
    letters = tokenizer(" A B C D")["input_ids"]
    right = total = 0
    for batch in batches:
        shape = (len(batch.ids), model.config.num_hidden_layers, model.config.num_attention_heads)
        row_gates = torch.ones(shape) if gates is None else gates.expand(shape)
        with gated(model, row_gates):
            logits = batch.logits(model)
        if TASKS[int(batch.tasks[0])].name.startswith("mc_"):
            is_letter = torch.isin(batch.targets, torch.tensor(letters))
            chosen = torch.tensor(letters)[logits[is_letter][:, letters].argmax(-1)]
            right += int((chosen == batch.targets[is_letter]).sum())
        else:
            right += int(batch.exact(logits).sum())
        total += len(batch.ids)
    return right / total


def accuracies(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
    gates: torch.Tensor | None = None,
    count: int = 600,
) -> dict[str, float]:
    """Return task -> accuracy on its first `count` held-out items."""
    return {
        task.name: score(model, tokenizer, task_batches(tokenizer, task.name, count), gates)
        for task in TASKS
    }
