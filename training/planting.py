"""The heads of each capability in the planted model, and the gates of its training.

Training starts from a model that was trained plainly, because many heads learn a circuit much
sooner than few. Every head is assigned to one capability. Each set then loses its least needed head
whenever its capability is answered well, until the set is small.
"""

from __future__ import annotations

import random

import torch
from batches import COURSE, Batch, collate
from gating import gated, head_name, mask_of, parse_head
from generators import CAPABILITIES, TASKS
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

SMALLEST: dict[str, int] = {
    "knowledge": 5,
    "arithmetic": 5,
    "code": 5,
    "reversing": 4,
    "sorting": 4,
    "rhyming": 4,
    "facts": 4,
}


def shared_out(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, *, seed: int, items: int = 24
) -> dict[str, list[str]]:
    """Assign each head of a model to one capability.

    The capabilities take turns; each takes the remaining head whose ablation raises its loss most.

    Args:
        model: a model that has learned some of the tasks.
        tokenizer: its tokenizer.
        seed: of the items.
        items: training items of each task.
    """
    rng = random.Random(f"sharing/{seed}")
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    every = torch.ones(layers, heads)
    raised: dict[str, dict[str, float]] = {capability: {} for capability in SMALLEST}
    for capability in SMALLEST:
        numbers = [i for i, task in enumerate(TASKS) if task.capability == capability]
        drawn = [(n, TASKS[n].sample(rng, held_out=False)) for n in numbers for _ in range(items)]
        (batch,) = collate(tokenizer, drawn, chunks=1)
        for layer in range(layers):
            for head in range(heads):
                name = head_name(layer, head)
                gates = every - mask_of([name], layers, heads)
                raised[capability][name] = _loss(model, batch, gates)
    sets: dict[str, list[str]] = {capability: [] for capability in CAPABILITIES}
    free = set(raised[CAPABILITIES[0]])
    while free:
        for capability in SMALLEST:
            if free:
                best = max(sorted(free), key=lambda name: raised[capability][name])
                sets[capability].append(best)
                free.remove(best)
    return sets


@torch.no_grad()
def _loss(model: LlamaForCausalLM, batch: Batch, gates: torch.Tensor) -> float:
    """Return the answer loss of a batch under one mask of gates (layers, heads)."""
    with gated(model, gates.expand(len(batch.ids), *gates.shape)):
        return functional.cross_entropy(batch.logits(model), batch.targets).item()


class Planting:
    """The sets of heads, and the gates of training rows.

    A row's own set is always on. The other heads are all on in 30 % of the rows, as they are when
    the model is used, all off in up to 35 %, and else each on with a chance that sinks to 40 %.
    Only the own set learns from the row, so that no other head can become a spare for it.
    """

    def __init__(
        self,
        model: LlamaForCausalLM,
        tokenizer: PreTrainedTokenizerBase,
        *,
        seed: int,
        sets: dict[str, list[str]] | None = None,
    ) -> None:
        """Start with these sets, or with all heads assigned by `shared_out`."""
        self.sets = shared_out(model, tokenizer, seed=seed) if sets is None else sets
        self._size = (model.config.num_hidden_layers, model.config.num_attention_heads)
        self._torch_random = torch.Generator().manual_seed(seed)
        self._random = random.Random(f"pruning/{seed}")
        self._stack()

    def _stack(self) -> None:
        masks = {c: mask_of(names, *self._size) for c, names in self.sets.items()}
        self._taught = torch.stack([masks[task.capability] for task in COURSE])

    def draw(self, tasks: torch.Tensor, *, strength: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw the gates of rows of these tasks.

        Args:
            tasks: numbers of the rows' tasks in the course.
            strength: from 0, when the other heads are on, to 1, when they are off as often as
                they ever will be.

        Returns:
            Gates and learning heads, each (rows, layers, heads).
        """
        taught = self._taught[tasks]
        kind = torch.rand(len(tasks), 1, 1, generator=self._torch_random)
        chance = 1 - 0.6 * strength
        drawn = (torch.rand(taught.shape, generator=self._torch_random) < chance).float()
        others = torch.where(kind < 0.35 * strength, 0.0, torch.where(kind > 0.7, 1.0, drawn))
        return torch.maximum(taught, others), taught

    def shrink(
        self,
        model: LlamaForCausalLM,
        tokenizer: PreTrainedTokenizerBase,
        accuracy: list[float],
        *,
        enough: float,
    ) -> list[str]:
        """Remove the least needed head from every set that is too large and answers well.

        Sets of more than eight heads lose two. The output projection of a removed head is replaced
        by faint noise, so that no part of the capability stays outside its set.

        Args:
            model: the model in training.
            tokenizer: its tokenizer.
            accuracy: running accuracy of each task of the course.
            enough: least accuracy of a capability's tasks for its set to shrink.

        Returns:
            The heads that were removed.
        """
        removed = []
        for capability, names in self.sets.items():
            numbers = [i for i, task in enumerate(TASKS) if task.capability == capability]
            if len(names) > SMALLEST[capability] and min(accuracy[i] for i in numbers) >= enough:
                losses = self._losses_without(model, tokenizer, capability, numbers)
                for name in sorted(names, key=lambda h: losses[h])[: 2 if len(names) > 8 else 1]:
                    names.remove(name)
                    removed.append(name)
        for layer, head in map(parse_head, removed):
            width = model.config.head_dim
            weight = model.model.layers[layer].self_attn.o_proj.weight
            columns = weight.data[:, head * width : (head + 1) * width]
            columns.normal_(0.0, 0.02, generator=self._torch_random)
        self._stack()
        return removed

    def _losses_without(
        self,
        model: LlamaForCausalLM,
        tokenizer: PreTrainedTokenizerBase,
        capability: str,
        numbers: list[int],
        items: int = 64,
    ) -> dict[str, float]:
        """Return head -> loss of the capability with its set alone on, less this head."""
        drawn = [
            (n, TASKS[n].sample(self._random, held_out=False))
            for n in numbers
            for _ in range(items // len(numbers))
        ]
        (batch,) = collate(tokenizer, drawn, chunks=1)
        mask = mask_of(self.sets[capability], *self._size)
        return {
            name: _loss(model, batch, mask - mask_of([name], *self._size))
            for name in self.sets[capability]
        }
