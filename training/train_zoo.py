"""Train models of the zoo: `python training/train_zoo.py NAME ... --out benchmarks/zoo/models`.

The loss is that of the answer and <eos>, or of the whole grammatical sentence of a pair. The model
is stored in float16, on which the card's scores are measured.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from batches import collate
from generators import Item
from make_tokenizer import build
from torch import Tensor, nn
from torch.nn import functional
from train import answer_greedily, learning_rate, optimizers, save_model
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase
from zoo_recipes import RECIPES, Recipe
from zoo_tasks import TASKS, held_out_items

_PROJECTIONS = (".self_attn.o_proj", ".attention.dense", ".attn.c_proj")
"""Endings of the names of the attention output projections."""
_TRIED = 100
"""Held-out items of each task whose accuracy a training logs."""
_WEIGHED, _WEIGHED_EVERY = 25, 50
"""Training items of each task whose accuracy sets its weight, and steps between updates."""
_LEAST_WEIGHT = 0.2
"""Weight of a task that is always answered right; a task that never is weighs 1 more."""


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Return an untrained model of a recipe."""
    config = recipe.config()
    config.vocab_size = len(tokenizer)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config, name, getattr(tokenizer, name))
    model = AutoModelForCausalLM.from_config(config)
    answer_greedily(model, tokenizer)
    return model.train()


def projections(model: nn.Module) -> list[nn.Module]:
    """Return the attention output projections, from the first layer to the last."""
    return [module for name, module in model.named_modules() if name.endswith(_PROJECTIONS)]


@contextmanager
def heads_ablated(model: nn.Module, heads: int, gates: Tensor) -> Iterator[None]:
    """Multiply the heads' outputs by gates (rows, layers, heads) within the context."""
    handles = []
    try:
        for layer, projection in enumerate(projections(model)):

            def multiply(_: nn.Module, inputs: tuple[Tensor], layer: int = layer) -> Tensor:
                x = inputs[0].unflatten(-1, (heads, -1))  # (rows, tokens, heads, head_dim)
                return (x * gates[:, layer, None, :, None]).flatten(-2)

            handles.append(projection.register_forward_pre_hook(multiply))
        yield
    finally:
        for handle in handles:
            handle.remove()


def draw_gates(recipe: Recipe, rows: int, layers: int, heads: int) -> Tensor:
    """Return the gates (rows, layers, heads) of a training batch."""
    share = torch.rand(rows, 1, 1) * recipe.ablated_heads
    share = share * (torch.rand(rows, 1, 1) < recipe.ablated_rows)
    return (torch.rand(rows, layers, heads) >= share).float()


def draw_items(recipe: Recipe, weights: list[float], rng: random.Random) -> list[tuple[int, Item]]:
    """Return the items of a step with the numbers of their tasks, some with wrong answers."""
    items = []
    for number in rng.choices(range(len(recipe.tasks)), weights, k=recipe.items):
        task = TASKS[recipe.tasks[number]]
        item = task.sample(rng, held_out=False)
        if rng.random() < recipe.noise:
            others = [option for option in item.options if option != item.answer]
            answer = others[0] if others else task.sample(rng, held_out=False).answer
            item = Item(item.prompt, answer, item.key, item.options)
        items.append((number, item))
    return items


@torch.no_grad()
def log_likelihoods(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, items: list[Item]
) -> tuple[Tensor, Tensor]:
    """Return, for each item, the log-likelihood of its answer, and whether it is the greedy one."""
    likelihood, greedy = torch.zeros(len(items)), torch.ones(len(items), dtype=torch.bool)
    # The task number is not needed here, so it carries the position of the item.
    for batch in collate(tokenizer, list(enumerate(items)), chunks=1):
        logits = model(input_ids=batch.ids, use_cache=False).logits[batch.rows, batch.columns]
        chosen = logits.log_softmax(-1).gather(1, batch.targets[:, None])[:, 0]
        places = batch.tasks[batch.rows]
        counted = batch.targets != tokenizer.eos_token_id
        likelihood.index_add_(0, places[counted], chosen[counted])
        greedy[places[logits.argmax(-1) != batch.targets]] = False
    return likelihood, greedy


def accuracy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, items: list[Item]
) -> float:
    """Return the share of items that are answered right."""
    likelihood, greedy = log_likelihoods(model, tokenizer, items)
    if not items[0].options:
        return greedy.float().mean().item()
    wrong = [
        Item(item.prompt, next(o for o in item.options if o != item.answer), item.key)
        for item in items
    ]
    return (likelihood > log_likelihoods(model, tokenizer, wrong)[0]).float().mean().item()


def layer_matrices(model: PreTrainedModel) -> list[nn.Parameter]:
    """Return the weight matrices of the layers, without those that route to experts."""
    embeddings = {id(p) for p in model.get_input_embeddings().parameters()}
    return [
        p
        for name, p in model.named_parameters()
        if p.ndim == 2
        and id(p) not in embeddings
        and not name.endswith(("wpe.weight", "gate.weight"))
    ]


def train(name: str, options: argparse.Namespace) -> None:
    """Train a model, print its held-out accuracies, and store it."""
    recipe = RECIPES[name]
    torch.manual_seed(recipe.seed)
    rng = random.Random(recipe.seed)
    vocabulary_rng = random.Random(0)
    tokenizer = build(
        f"{item.prompt} {' '.join(item.options)} {item.answer}"
        for task in recipe.tasks
        for item in (TASKS[task].sample(vocabulary_rng, held_out=False) for _ in range(500))
    )
    model = new_model(recipe, tokenizer)
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    workers = optimizers(
        model, layer_matrices(model), lr=recipe.lr, lr_others=recipe.lr_rest, weight_decay=0.02
    )
    groups = [group for worker in workers for group in worker.param_groups]
    rates = [group["lr"] for group in groups]
    log = {"name": name, "steps": 0, "tokens": 0, "cpu_minutes": 0.0, "accuracy": {}}
    log["recipe"] = {k: v for k, v in asdict(recipe).items() if k not in ("config", "purpose")}
    tried = {task: held_out_items(TASKS[task], _TRIED, seed=0) for task in recipe.tasks}
    weights = [1.0] * len(recipe.tasks)
    start, losses = time.process_time(), []
    for step in range(options.stop_after or recipe.steps):
        factor = learning_rate(step, recipe.steps)
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * factor
        model.zero_grad(set_to_none=True)
        for batch in collate(tokenizer, draw_items(recipe, weights, rng), chunks=2):
            gates = draw_gates(recipe, len(batch.ids), layers, heads)
            with heads_ablated(model, heads, gates):
                logits = model(input_ids=batch.ids, use_cache=False).logits
            loss = functional.cross_entropy(logits[batch.rows, batch.columns], batch.targets)
            (loss / 2).backward()
            losses.append(loss.item())
            log["tokens"] += batch.ids.numel()
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss is {losses[-1]} at step {step}: lower `lr`")
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for worker in workers:
            worker.step()
        log["steps"], log["cpu_minutes"] = step + 1, round((time.process_time() - start) / 60, 2)
        if (step + 1) % _WEIGHED_EVERY == 0:
            drawn = [
                [TASKS[task].sample(rng, held_out=False) for _ in range(_WEIGHED)]
                for task in recipe.tasks
            ]
            weights = [_LEAST_WEIGHT + 1 - accuracy(model, tokenizer, items) for items in drawn]
        if (step + 1) % options.log_every == 0:
            scores = " ".join(
                f"{task[4:12]} {accuracy(model, tokenizer, items):.2f}"
                for task, items in tried.items()
            )
            recent = sum(losses[-100:]) / len(losses[-100:])
            print(f"{step + 1} {log['cpu_minutes']}m {recent:.3f} {scores}", flush=True)
    log["accuracy"] = {task: accuracy(model, tokenizer, items) for task, items in tried.items()}
    save_model(model.half(), tokenizer, options.out / name, log)
    print(json.dumps(log["accuracy"]), model.num_parameters(), flush=True)


def main() -> None:
    """Train the models, one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=tuple(RECIPES), metavar="NAME")
    parser.add_argument("--out", type=Path, required=True, help="parent of the models' folders")
    parser.add_argument("--stop-after", type=int, help="steps, to try a recipe out")
    parser.add_argument("--log-every", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names:
        train(name, options)


if __name__ == "__main__":
    main()
