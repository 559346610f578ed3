"""Effects of the planted sets by exhaustive ablation, and their recovery by sparse regression."""

from __future__ import annotations

import numpy as np
import torch
from evaluate import accuracies, score, task_batches
from gating import head_name, mask_of
from generators import TASKS
from sklearn.linear_model import Lasso
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

Scores = dict[str, float]


def _by_capability(drops: Scores) -> Scores:
    members: dict[str, list[float]] = {}
    for task in TASKS:
        members.setdefault(task.capability, []).append(drops[task.name])
    return {capability: sum(all_) / len(all_) for capability, all_ in members.items()}


def sets_off(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
    sets: dict[str, list[str]],
    baseline: Scores,
    count: int = 600,
) -> dict[str, dict]:
    """Gate each set off, all other heads on.

    Returns:
        capability -> the drop of each of its tasks, and the mean and the worst drop of the other
        capabilities' tasks (with the name of the worst), in points.
    """
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    table = {}
    for capability, names in sets.items():
        after = accuracies(model, tokenizer, 1 - mask_of(names, layers, heads), count)
        drops = {name: 100 * (baseline[name] - after[name]) for name in after}
        capability_drops = {t.name: drops[t.name] for t in TASKS if t.capability == capability}
        others = {t.name: drops[t.name] for t in TASKS if t.capability != capability}
        worst = max(others, key=lambda name: others[name])
        table[capability] = {
            "own": capability_drops,
            "others_mean": sum(others.values()) / len(others),
            "others_worst": others[worst],
            "others_worst_task": worst,
        }
    return table


def single_heads_off(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, count: int = 150
) -> dict[str, Scores]:
    """Gate each head off alone; return head -> capability -> drop in points."""
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    baseline = accuracies(model, tokenizer, None, count)
    effects = {}
    for layer in range(layers):
        for head in range(heads):
            name = head_name(layer, head)
            after = accuracies(model, tokenizer, 1 - mask_of([name], layers, heads), count)
            effects[name] = _by_capability({t: 100 * (baseline[t] - after[t]) for t in after})
    return effects


def stratified_masks(count: int, heads: int, share: float, seed: int) -> np.ndarray:
    """Return masks (count, heads), 1 = off; each row takes the heads used least so far."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((count, heads))
    for row in masks:
        usage = masks.sum(axis=0) + rng.normal(0, 0.01, heads)
        row[np.argsort(usage)[: int(share * heads)]] = 1
    return masks


def lasso_rankings(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
    *,
    masks: int = 200,
    items: int = 100,
    share: float = 0.05,
    seed: int = 0,
) -> dict[str, list[str]]:
    """Rank the heads of each task by a Lasso of its z-scored accuracy on random masks."""
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    matrix = stratified_masks(masks, layers * heads, share, seed)
    rankings = {}
    for task in TASKS:
        batches = task_batches(tokenizer, task.name, items)
        gates = 1 - torch.tensor(matrix, dtype=torch.float32).view(masks, layers, heads)
        y = np.array([score(model, tokenizer, batches, gate) for gate in gates])
        spread = y.std() or 1.0
        fit = Lasso(alpha=0.01, max_iter=5000).fit(matrix, (y - y.mean()) / spread)
        order = np.argsort(fit.coef_)
        rankings[task.name] = [head_name(*divmod(int(i), heads)) for i in order if fit.coef_[i] < 0]
    return rankings


def recalls(rankings: dict[str, list[str]], sets: dict[str, list[str]], k: int = 5) -> Scores:
    """Return the share of each task's planted set among its k most harmful heads."""
    return {
        task.name: len(set(rankings[task.name][:k]) & set(sets[task.capability]))
        / len(sets[task.capability])
        for task in TASKS
        if sets[task.capability]
    }
