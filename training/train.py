"""Train a shipped model.

Usage: `python training/train.py {reference,planted} --out FOLDER [options]`
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from batches import COURSE, AdaptiveSampler, collate
from evaluate import accuracies
from gating import gated
from make_tokenizer import build, save
from muon import Muon
from planting import Planting
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase


def new_model(options: argparse.Namespace, tokenizer: PreTrainedTokenizerBase) -> LlamaForCausalLM:
    """Return an untrained Llama model of the size in the options."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.width,
        intermediate_size=options.intermediate,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.kv_heads,
        head_dim=options.head_dim,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        use_cache=True,
    )
    return LlamaForCausalLM(config)


def answer_greedily(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Set the special tokens and greedy decoding in the model's settings of generation."""
    model.generation_config.update(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )


def optimizers(
    model: PreTrainedModel,
    matrices: list[torch.nn.Parameter],
    *,
    lr: float,
    lr_others: float,
    weight_decay: float,
) -> list[torch.optim.Optimizer]:
    """Return Muon for the weight matrices of the layers and AdamW for all other parameters.

    Args:
        model: the model.
        matrices: the weight matrices of its layers.
        lr: learning rate of the matrices.
        lr_others: learning rate of the other parameters.
        weight_decay: weight decay of the matrices; the others have none.
    """
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    return [
        Muon(matrices, lr=lr, weight_decay=weight_decay),
        torch.optim.AdamW(others, lr=lr_others, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def learning_rate(step: int, steps: int) -> float:
    """Return the factor of the schedule: warm-up, plateau, linear decay over the last half."""
    return min(1.0, (step + 1) / 50, (1 - step / steps) / 0.5)


def save_model(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, folder: Path, log: dict
) -> None:
    """Write the model folder; each file is replaced at once, so that no reader sees half of one."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        model.save_pretrained(name)
        save(tokenizer, Path(name))
        (Path(name) / "training.json").write_text(json.dumps(log, indent=2) + "\n")
        for path in sorted(Path(name).iterdir()):
            path.chmod(0o644)
            os.replace(path, folder / path.name)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("reference", "planted"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="folder of a model to start from")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, default=4)
    parser.add_argument("--head-dim", type=int, default=16)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--intermediate", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1400)
    parser.add_argument("--stop-after", type=int, help="steps, if fewer than the schedule's")
    parser.add_argument("--first-steps", type=int, default=130, help="that compare options alone")
    parser.add_argument("--items", type=int, default=192, help="items of one step")
    parser.add_argument("--chunks", type=int, default=2, help="length buckets of one step")
    parser.add_argument("--lr", type=float, default=0.02, help="of the layers' matrices (Muon)")
    parser.add_argument("--lr-embedding", type=float, default=0.003, help="of the rest (AdamW)")
    parser.add_argument("--weight-decay", type=float, default=0.02)
    parser.add_argument("--quiet", type=float, default=0.05, help="weight of foreign heads' output")
    parser.add_argument("--gates-by", type=float, default=0.3, help="share of the steps (planted)")
    parser.add_argument("--compare-first", type=float, default=0.0, help="lesson's weight")
    parser.add_argument("--add", nargs="*", default=[], help="heads to add, as sorting=L1H2")
    parser.add_argument("--enough", type=float, default=0.5, help="accuracy for a set to shrink")
    parser.add_argument("--shrink-every", type=int, default=25, help="steps (planted)")
    parser.add_argument("--shrink-between", type=float, nargs=2, default=(0.25, 0.65))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--log-every", type=int, default=100)
    return parser.parse_args()


def main() -> None:
    """Train, save at milestones, and print the held-out accuracies."""
    options = parse()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    tokenizer = build()
    if options.start is None:
        model = new_model(options, tokenizer)
    else:
        model = LlamaForCausalLM.from_pretrained(options.start, dtype=torch.float32)
    model.train()
    answer_greedily(model, tokenizer)
    settings = {k: v for k, v in vars(options).items() if k not in ("out", "start", "save_every")}
    log = {"settings": settings, "steps": 0, "tokens": 0, "minutes": 0.0}
    if options.start is not None:
        log["start"] = json.loads((options.start / "training.json").read_text(encoding="utf-8"))
    planting = None
    if options.kind == "planted":
        sets = log.get("start", {}).get("planted")
        for capability, name in (pair.split("=") for pair in options.add):
            sets[capability].append(name)
        planting = Planting(model, tokenizer, seed=options.seed, sets=sets)
        log["planted"] = planting.sets
    save_model(model, tokenizer, options.out, log)
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    workers = optimizers(
        model, matrices, lr=options.lr, lr_others=options.lr_embedding,
        weight_decay=options.weight_decay,
    )  # fmt: skip
    groups = [group for worker in workers for group in worker.param_groups]
    rates = [group["lr"] for group in groups]
    sampler = AdaptiveSampler(options.seed, compare_first=options.compare_first)
    start, losses = time.perf_counter(), []
    last = options.stop_after or options.steps
    for step in range(last):
        factor = learning_rate(step, options.steps)
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * factor
        strength = min(1.0, step / max(1, options.gates_by * options.steps))
        model.zero_grad(set_to_none=True)
        noise = 0.0
        only = "mc_same" if options.start is None and step < options.first_steps else None
        items = sampler.draw(options.items, only)
        for batch in collate(tokenizer, items, options.chunks):
            scope = nullcontext([])
            if planting is not None:
                gates, taught = planting.draw(batch.tasks, strength=strength)
                scope = gated(model, gates, taught if options.quiet else None)
            with scope as loudness:
                logits = batch.logits(model)
            loss = functional.cross_entropy(logits, batch.targets)
            if loudness:
                noise += sum(loudness).item() / options.chunks
                (loss + options.quiet * sum(loudness)).div(options.chunks).backward()
            else:
                (loss / options.chunks).backward()
            sampler.tell(batch.tasks, batch.exact(logits))
            losses.append(loss.item())
            log["tokens"] += batch.ids.numel()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for worker in workers:
            worker.step()
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss is {losses[-1]} at step {step}: lower --lr")
        low, high = options.shrink_between
        shrinks = options.shrink_every and (step + 1) % options.shrink_every == 0
        if planting is not None and shrinks and low < (step + 1) / options.steps <= high:
            removed = planting.shrink(model, tokenizer, sampler.accuracy, enough=options.enough)
            print(f"{step + 1} taken {' '.join(removed)}", flush=True)
        log["steps"], log["minutes"] = step + 1, round((time.perf_counter() - start) / 60, 2)
        if (step + 1) % options.log_every == 0:
            running = " ".join(
                f"{task.name[:10]} {a:.2f}"
                for task, a in zip(COURSE, sampler.accuracy, strict=True)
            )
            recent = sum(losses[-100:]) / len(losses[-100:])
            rate = log["tokens"] / (time.perf_counter() - start)
            print(
                f"{step + 1} {log['minutes']}m {rate:.0f}/s {recent:.3f} {noise:.3f} {running}",
                flush=True,
            )
        if (step + 1) % options.save_every == 0 or step + 1 == last:
            save_model(model, tokenizer, options.out, log)
            print({k: round(v, 3) for k, v in accuracies(model, tokenizer).items()}, flush=True)


if __name__ == "__main__":
    main()
