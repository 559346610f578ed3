"""Trains a small model whose heads have known backups.

    python training/train_backups.py --out FOLDER

Two tasks have two sets of two heads each. The first set answers every question; the second takes
over without it, but only on easy questions. Every row draws which heads are ablated. Where no whole
set is left that may answer, the label is the answer of another question, so that neither other
heads nor a part of a set learn the task.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import torch
from batches import collate
from gating import head_name, mask_of
from generators import Item
from make_tokenizer import build
from torch import Tensor
from torch.nn import functional
from train import learning_rate, optimizers, save_model
from train_zoo import accuracy, heads_ablated, layer_matrices, new_model
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from zoo_recipes import RECIPES
from zoo_tasks import TASKS, held_out_items

BACKUPS = {
    "zoo_next_day": (("L0H0", "L1H1"), ("L1H4", "L2H2")),
    "zoo_spelling": (("L0H3", "L2H5"), ("L1H2", "L3H0")),
}
"""By task, the set that answers and the set that takes over."""

TASK_NAMES = (*BACKUPS, "zoo_copying")
"""All tasks; the last one uses any other head."""

_HARD = {
    "zoo_next_day": ("sunday", "monday", "tuesday"),
    "zoo_spelling": ("zero", "one", "two", "three", "four"),
}
"""First words of the answers that the second set does not know."""

_LAYERS, _HEADS = 4, 6
_OF = {
    task: [mask_of(list(heads), _LAYERS, _HEADS).bool() for heads in sets]
    for task, sets in BACKUPS.items()
}


def drawn(task: str, rng: random.Random) -> tuple[Item, Tensor]:
    """Returns a training item, with the answer that its gates deserve, and the gates."""
    item, off = TASKS[task].sample(rng, held_out=False), torch.zeros(_LAYERS, _HEADS, dtype=bool)
    chance = rng.random() * (rng.random() < 0.7)
    for planted in _OF.values():
        for one in planted:
            off |= one & (torch.rand(_LAYERS, _HEADS) < chance)
    if task in BACKUPS:
        own = _OF[task][0] | _OF[task][1]
        off |= (torch.rand(_LAYERS, _HEADS) < chance) & ~own
        off &= ~own
        known = item.answer.split()[0] not in _HARD[task]
        whole = []
        for one in _OF[task]:
            missing = one & (torch.rand(_LAYERS, _HEADS) < rng.choice((0.0, 0.0, 0.6, 1.0)))
            off |= missing
            whole.append(not missing.any())
        if not (whole[0] or (whole[1] and known)):
            answer = TASKS[task].sample(rng, held_out=False).answer
            item = Item(item.prompt, answer, item.key)
    return item, (~off).float()


def scores(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, count: int = 200
) -> dict[str, dict[str, float]]:
    """Returns the accuracy of every task intact, and without each set, both and each member."""
    found: dict[str, dict[str, float]] = {}
    for task in TASK_NAMES:
        items, lines = held_out_items(TASKS[task], count, seed=0), {"": []}
        for name, (first, second) in BACKUPS.items():
            names = (first, second, first + second) if name == task else (first + second,)
            lines |= {"+".join(heads): list(heads) for heads in names}
            if name == task:
                lines |= {head: [head] for head in first + second}
                lines |= {f"{head} and the first": [head, *first] for head in second}
                rest = [
                    head_name(layer, head) for layer in range(_LAYERS) for head in range(_HEADS)
                ]
                lines["all others"] = [head for head in rest if head not in first + second]
        found[task] = {}
        for name, heads in lines.items():
            gates = 1 - mask_of(heads, _LAYERS, _HEADS)
            with heads_ablated(model, _HEADS, gates[None]):
                found[task][name] = round(accuracy(model, tokenizer, items), 3)
    return found


def main() -> None:
    """Trains the model, prints what each set does, and stores it in half precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    rng, recipe = random.Random(options.seed), RECIPES["gpt2-24"]
    words = random.Random(0)
    tokenizer = build(
        f"{item.prompt} {item.answer}"
        for task in TASK_NAMES
        for item in (TASKS[task].sample(words, held_out=False) for _ in range(500))
    )
    model = new_model(recipe, tokenizer)
    workers = optimizers(
        model, layer_matrices(model), lr=options.lr, lr_others=recipe.lr_rest, weight_decay=0.02
    )
    groups = [group for worker in workers for group in worker.param_groups]
    rates, start = [group["lr"] for group in groups], time.process_time()
    for step in range(options.steps):
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * learning_rate(step, options.steps)
        rows = [drawn(rng.choice(TASK_NAMES), rng) for _ in range(options.items)]
        gates = torch.stack([gate for _, gate in rows])
        model.zero_grad(set_to_none=True)
        # The task number is not needed here, so it carries the position of the row.
        for batch in collate(tokenizer, [*enumerate(item for item, _ in rows)], chunks=2):
            with heads_ablated(model, _HEADS, gates[batch.tasks]):
                logits = model(input_ids=batch.ids, use_cache=False).logits
            loss = functional.cross_entropy(logits[batch.rows, batch.columns], batch.targets)
            (loss / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for worker in workers:
            worker.step()
        if (step + 1) % 500 == 0:
            minutes = (time.process_time() - start) / 60
            print(
                step + 1,
                f"{minutes:.1f}m {loss.item():.3f}",
                scores(model, tokenizer, 60),
                flush=True,
            )
    minutes = round((time.process_time() - start) / 60, 2)
    model.half()
    log = {
        **vars(options), "out": None, "minutes": minutes, "backups": BACKUPS,
        "accuracy": scores(model.float(), tokenizer),
    }  # fmt: skip
    save_model(model.half(), tokenizer, options.out, log)
    print(json.dumps(log, indent=2))


if __name__ == "__main__":
    main()
