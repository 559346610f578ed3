"""Score models of the zoo with lm-eval as they are stored, and write their cards.

Usage: `python training/zoo_card.py benchmarks/zoo/models/gpt2-24 ...`
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TQDM_DISABLE", "1")

import lm_eval
import numpy as np
import torch
from card import FRONT_MATTER, evaluate_by_lm_eval
from transformers import AutoModelForCausalLM
from zoo_recipes import RECIPES

_TASKS = Path(__file__).parents[1] / "benchmarks/zoo/tasks"
_ITEMS, _FIRST = 400, 25
"""Items of each task that are scored, and those whose score the tests repeat."""

_CARD = """\
# {name}

{purpose} It is for {role}.

{architecture}, {layers} layers of {heads} query heads on {kv_heads} key-value heads ({total}
heads), head width {head_dim}, model width {width}, {vocabulary} tokens, {parameters:,} parameters
in float16.

`python training/train_zoo.py {name} --out FOLDER`, `python training/zoo_card.py FOLDER/{name}`:
seed {seed}, {steps:,} steps of {items} fresh random items ({tokens:,} tokens with padding),
{minutes:.1f} minutes of one CPU core. {shaping}

| task | metric | chance | score |
|---|---|---|---|
{scores}

Measured with lm-eval {lm_eval} on {count} held-out items of each task, from the stored weights.
"""


def scores_of(folder: Path, tasks: list[str]) -> dict[str, list[float]]:
    """Return task -> scores by lm-eval of its first held-out items, in their order."""
    answer = evaluate_by_lm_eval(folder, tasks, _TASKS, _ITEMS)
    by_task = {}
    for task in tasks:
        samples = sorted(answer["samples"][task], key=lambda sample: sample["doc_id"])
        by_task[task] = [float(sample[metric_of(task)]) for sample in samples]
    return by_task


def has_options(task: str) -> bool:
    """Whether a task is multiple choice."""
    return "multiple_choice" in (_TASKS / f"{task}.yaml").read_text(encoding="utf-8")


def metric_of(task: str) -> str:
    """Return lm-eval's name of a task's metric."""
    return "acc" if has_options(task) else "exact_match"


def shaping(recipe: dict) -> str:
    """Return sentences on the heads ablated and the labels changed in training."""
    lines = []
    if recipe["ablated_rows"]:
        lines.append(
            f"In {recipe['ablated_rows']:.0%} of the training rows heads were ablated at random: "
            f"each with a chance drawn for the row between 0 and {recipe['ablated_heads']:.0%}."
        )
    if recipe["noise"]:
        lines.append(f"{recipe['noise']:.0%} of the training items had a wrong or random answer.")
    return "\n".join(lines) or "No head was ablated in training and no label changed."


def write_card(folder: Path) -> None:
    """Score a model and write `card.json` and `README.md`."""
    log = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    recipe = log["recipe"]
    tasks = list(recipe["tasks"])
    model = AutoModelForCausalLM.from_pretrained(folder)
    config = model.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    by_item = scores_of(folder, tasks)
    scores = {task: float(np.mean(items)) for task, items in by_item.items()}
    first = {task: float(np.mean(items[:_FIRST])) for task, items in by_item.items()}
    card = {
        "role": recipe["role"],
        "heads": layers * heads,
        "scores": scores,
        f"scores_of_first_{_FIRST}": first,
    }
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    rows = [
        f"| {task} | {metric_of(task)} | {0.5 * has_options(task):g} | {score:.3f} |"
        for task, score in scores.items()
    ]
    text = (FRONT_MATTER + _CARD).format(
        name=log["name"],
        purpose=RECIPES[log["name"]].purpose,
        role="developing methods" if recipe["role"] == "develop" else "reporting alone",
        architecture=config.architectures[0],
        layers=layers,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", heads),
        total=layers * heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        width=config.hidden_size,
        vocabulary=config.vocab_size,
        parameters=model.num_parameters(),
        seed=recipe["seed"],
        steps=log["steps"],
        items=recipe["items"],
        tokens=log["tokens"],
        minutes=log["cpu_minutes"],
        shaping=shaping(recipe),
        scores="\n".join(rows),
        lm_eval=lm_eval.__version__,
        count=_ITEMS,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    """Write the cards of the folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    torch.set_num_threads(1)
    for folder in parser.parse_args().folders:
        write_card(folder)


if __name__ == "__main__":
    main()
