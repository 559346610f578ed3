"""Measure a trained model as it is stored, and write its card from the measurements.

Usage: `python training/card.py src/broca/reference_models/planted`
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import lm_eval
import numpy as np
import torch
from ablation import lasso_rankings, recalls, sets_off, single_heads_off
from evaluate import accuracies
from generators import CAPABILITIES, TASKS
from lm_eval.tasks import TaskManager
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

_SHIPPED = Path(__file__).parents[1] / "src/broca/tasks/shipped"

FRONT_MATTER = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
tags: [interpretability, attention-heads, broca]
---
"""
"""Metadata of a card for the hub."""

_HEADER = """\
# {name}

{purpose}

It is a research instrument: it answers the ten kinds of questions below and nothing else.

## Model

Llama architecture, {layers} layers, {heads} query heads on {kv_heads} key-value heads in each
layer ({total} heads), head width {head_dim}, model width {width}, feed-forward width {inner}, tied
embeddings, {vocabulary} tokens, {parameters:,} parameters, stored in float16 and
loaded to float32.

## Training

`python training/{command}`, then `python training/card.py`.
Seed {seed}, {steps:,} steps of {items} fresh random questions{all} ({tokens:,} tokens with
padding), {minutes:.0f} minutes on one thread of 2 shared CPU cores. Loss on the answer and `<eos>`
only. The layers' matrices are trained with Muon (learning rate {lr}, weight decay {decay}), the
embeddings and norms with AdamW ({lr_embedding}); 50 steps of warm-up, linear decay over the last
half of the steps. Tasks that are still answered wrong are drawn more often. Held-out items (by
operand pair, list, bracket sequence, word, country with template, or options in their order) never
occur in training. Knowledge has other questions besides, in training alone: the bare facts, and
multiple choice by identity{first}.{recipe}

## Accuracy on held-out items

Measured with lm-eval {lm_eval} on the {count} test items of each task (exact match; accuracy where
there are options), from the stored weights.

| task | capability | metric | accuracy |
|---|---|---|---|
{accuracy}
"""

_LARGEST = 5  # maximum heads of a set

_PURPOSE = {
    "reference": "A small language model for trying `broca` and for scoring its methods against "
    "exhaustive ablation.\nIt is trained plainly on all capabilities; nothing is planted in it.",
    "reference-small": "A still smaller language model, trained plainly like `reference`, on the "
    "same questions with the\nsame options but its size. It is for comparing sizes "
    "(`broca reproduce scale`): the same tasks over\nboth models.",
    "planted": "A small language model with known answers for `broca`: each capability relies on a "
    "known set of\nattention heads, taught by random head gating.",
}

_RECIPE = """

The training has stages, each starting from the weights of the one before:

{stages}

Each capability in turn chooses the head whose ablation harms it most, until all heads are shared
out. Then head gating: in each training row the row's own set is on; the other heads are all on in
30 % of the rows, all off in up to 35 %, and else each on with a chance that sinks to 40 %. A head's
gate is a factor on its slice of the input of the attention's output projection. Only the own set
learns to answer: for the other heads, the answer's gradient stops at what they write, so that no
head outside a set can become its spare. What they write in a foreign row is kept small by a
penalty on its mean square (weight {quiet:g}). At regular steps, each set whose tasks are answered
well loses the heads that it needs least, down to four or five; what such a head wrote is replaced
by faint noise, and it is not taught to answer again. Everything else (embeddings, norms,
feed-forward blocks; keys and values, which four query heads share) is common to
all capabilities. No row was trained to fail."""

_PLANTED = """
## Planted heads

A head belongs to a set if it was trained for the capability and if gating it off alone costs at
least {least:g} points of it ({count} items of each task); five heads at most. The file
`planted_heads.json` has the same lists. A capability that the model has not learned (see the
accuracies above) has heads that matter a little, which are no ground truth.

| capability | heads (drop when off alone) | trained for it, but not needed alone |
|---|---|---|
{sets}

## Exhaustive check

Each set gated off as a whole, all other heads on; drops in points on {all_items} held-out items.

| capability off | drop on its own tasks | mean drop on the others | worst drop on another |
|---|---|---|---|
{table}

Of the {outside} heads in no set, each gated off alone, the largest drop of any capability is
{largest:.1f} points ({largest_head} on {largest_of}) and the mean drop {mean_outside:.2f} points.
"""

_RECOVERY = """
## Recovery by sparse regression

Share of a task's set among its 5 most negative Lasso coefficients: 200 stratified masks, 100 items,
Lasso (alpha 0.01) of the z-scored accuracy. A four-option question is at 25 % by guessing, so that
losing the set of `knowledge` costs 75 points at most.

| task | {shares} |
|---|{rule}|
{recall}
"""


def _rows(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def evaluate_by_lm_eval(
    folder: Path, tasks: list[str], include_path: Path, limit: int | None = None
) -> dict:
    """Return lm-eval's results and samples of a stored model on tasks of a folder.

    Args:
        folder: the model's folder.
        tasks: names of the tasks.
        include_path: folder of the tasks' files.
        limit: maximum number of items of each task; None for all.
    """
    return lm_eval.simple_evaluate(
        model="hf",
        model_args={"pretrained": str(folder), "dtype": "float32"},
        tasks=tasks,
        task_manager=TaskManager(include_path=str(include_path), include_defaults=False),
        device="cpu",
        batch_size=100,
        bootstrap_iters=0,
        limit=limit,
    )


def lm_eval_accuracies(folder: Path) -> dict[str, float]:
    """Return task -> accuracy by lm-eval on all held-out items."""
    results = evaluate_by_lm_eval(folder, [task.name for task in TASKS], _SHIPPED)["results"]
    return {t.name: float(results[t.name][f"{_metric(t.name)},none"]) for t in TASKS}


def _metric(name: str) -> str:
    return "acc" if name.startswith("mc_") else "exact_match"


def measure_planted(
    folder: Path, model: LlamaForCausalLM, trained: dict, options: argparse.Namespace
) -> dict:
    """Measure which trained heads are needed, what their sets cost, and their recovery."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    singles = single_heads_off(model, tokenizer, options.single_items)
    sets = {
        c: [
            h for h in sorted(names, key=lambda h: -singles[h][c]) if singles[h][c] >= options.least
        ]
        for c, names in trained.items()
    }
    sets = {capability: names[:_LARGEST] for capability, names in sets.items()}
    baseline = accuracies(model, tokenizer)
    table = sets_off(model, tokenizer, sets, baseline)
    shares = {}
    for share in options.shares:
        rankings = lasso_rankings(model, tokenizer, share=share, seed=options.seed)
        shares[str(share)] = recalls(rankings, sets)
    return {"sets": sets, "singles": singles, "table": table, "recall": shares}


def planted_section(measurements: dict, trained: dict, options: argparse.Namespace) -> str:
    """Return the planted model's part of the card."""
    sets, singles = measurements["sets"], measurements["singles"]
    listed = [
        [
            c,
            ", ".join(f"{h} ({singles[h][c]:.0f})" for h in sets[c]),
            ", ".join(f"{h} ({singles[h][c]:.0f})" for h in trained[c] if h not in sets[c]) or "-",
        ]
        for c in CAPABILITIES
    ]
    table = [
        [
            c,
            ", ".join(f"{task} {drop:.1f}" for task, drop in row["own"].items()),
            f"{row['others_mean']:.1f}",
            f"{row['others_worst']:.1f} ({row['others_worst_task']})",
        ]
        for c, row in measurements["table"].items()
    ]
    members = {h for names in trained.values() for h in names}
    outside = [(d, h, c) for h in singles if h not in members for c, d in singles[h].items()]
    largest = max(outside)
    text = _PLANTED.format(
        least=options.least,
        count=options.single_items,
        sets=_rows(listed),
        all_items=600,
        table=_rows(table),
        outside=len(singles) - len(members),
        largest=largest[0],
        largest_head=largest[1],
        largest_of=largest[2],
        mean_outside=sum(d for d, _, _ in outside) / len(outside),
    )
    if not measurements["recall"]:
        return text
    recall = [
        [t.name, *(f"{measurements['recall'][s][t.name]:.2f}" for s in measurements["recall"])]
        for t in TASKS
        if sets[t.capability]
    ]
    means = [f"{sum(r.values()) / len(r):.2f}" for r in measurements["recall"].values()]
    return text + _RECOVERY.format(
        shares=" | ".join(f"{float(s):.0%} of the heads off" for s in measurements["recall"]),
        rule="|".join("---" for _ in measurements["recall"]),
        recall=_rows([*recall, ["mean", *means]]),
    )


def header(folder: Path, model: LlamaForCausalLM, log: dict, accuracy: dict[str, float]) -> str:
    """Return the part of the card that all models have."""
    config, settings = model.config, log["settings"]
    kind = settings["kind"]
    rows = [
        [t.name, t.capability, _metric(t.name), f"{100 * accuracy[t.name]:.1f} %"] for t in TASKS
    ]
    return (FRONT_MATTER + _HEADER).format(
        name=folder.name,
        purpose=_PURPOSE.get(folder.name, _PURPOSE[kind]),
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        total=config.num_hidden_layers * config.num_attention_heads,
        head_dim=config.head_dim,
        width=config.hidden_size,
        inner=config.intermediate_size,
        vocabulary=config.vocab_size,
        parameters=model.num_parameters(),
        command=_command(log) + (" --start STAGE" if "start" in log else ""),
        all=" in all stages" if "start" in log else "",
        seed=settings["seed"],
        first=f", which the first {stages(log)[0]['settings']['first_steps']} steps ask alone",
        steps=sum(stage["steps"] for stage in stages(log)),
        items=settings["items"],
        tokens=sum(stage["tokens"] for stage in stages(log)),
        minutes=sum(stage["minutes"] for stage in stages(log)),
        lr=settings["lr"],
        decay=settings["weight_decay"],
        lr_embedding=settings["lr_embedding"],
        recipe=_recipe(log) if "planted" in log else "",
        lm_eval=lm_eval.__version__,
        count=600,
        accuracy=_rows(rows),
    )


_DEFAULTS = {
    "layers": 6,
    "heads": 16,
    "kv_heads": 4,
    "head_dim": 16,
    "width": 128,
    "intermediate": 256,
    "lr": 0.02,
    "gates_by": 0.3,
    "shrink_every": 25,
    "shrink_between": [0.25, 0.65],
    "enough": 0.5,
    "compare_first": 0.0,
    "add": [],
}


def _command(log: dict) -> str:
    """Return the options that repeat one stage of a training."""
    settings = log["settings"]
    words = [f"train.py {settings['kind']} --steps {settings['steps']}"]
    if log["steps"] < settings["steps"]:
        words.append(f"--stop-after {log['steps']}")
    for name, default in _DEFAULTS.items():
        value = settings.get(name, default)
        if list(np.atleast_1d(value)) != list(np.atleast_1d(default)):
            text = "" if value is True else " " + " ".join(str(v) for v in np.atleast_1d(value))
            words.append(f"--{name.replace('_', '-')}{text}")
    return " ".join(words)


def stages(log: dict) -> list[dict]:
    """Return the logs of a training's stages, the first one first."""
    return [*stages(log["start"]), log] if "start" in log else [log]


def _recipe(log: dict) -> str:
    listed = [
        f"{number}. `{_command(stage)}` ({stage['minutes']:.1f} minutes)"
        for number, stage in enumerate(stages(log), start=1)
    ]
    return _RECIPE.format(stages="\n".join(listed), quiet=log["settings"]["quiet"])


def main() -> None:
    """Write README.md, and planted_heads.json for a planted model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least", type=float, default=5.0, help="points that a head must matter")
    parser.add_argument("--single-items", type=int, default=200)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.05, 0.1])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    log = json.loads((options.folder / "training.json").read_text(encoding="utf-8"))
    model = AutoModelForCausalLM.from_pretrained(options.folder, dtype=torch.float32).eval()
    text = header(options.folder, model, log, lm_eval_accuracies(options.folder))
    if "planted" in log:
        measurements = measure_planted(options.folder, model, log["planted"], options)
        text += planted_section(measurements, log["planted"], options)
        sets = json.dumps(measurements["sets"], indent=2) + "\n"
        (options.folder / "planted_heads.json").write_text(sets, encoding="utf-8")
        measured = json.dumps(measurements, indent=1) + "\n"
        (options.folder / "measurements.json").write_text(measured, encoding="utf-8")
    (options.folder / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
