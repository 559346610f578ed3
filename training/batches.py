"""Turns questions into padded batches of token ids with the answer positions marked."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from generators import LESSONS, TASKS, Item
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

COURSE = (*TASKS, *LESSONS)


@dataclass(frozen=True)
class Batch:
    """Right-padded rows; `rows`, `columns` locate each answer token's predecessor."""

    ids: torch.Tensor  # (rows, tokens)
    tasks: torch.Tensor  # (rows,) number of the task in COURSE
    rows: torch.Tensor  # (answer tokens,)
    columns: torch.Tensor  # (answer tokens,)
    targets: torch.Tensor  # (answer tokens,)

    def logits(self, model: LlamaForCausalLM) -> torch.Tensor:
        """Return the model's logits for the answer tokens, (answer tokens, vocabulary)."""
        hidden = model.model(input_ids=self.ids, use_cache=False).last_hidden_state
        return model.lm_head(hidden[self.rows, self.columns])

    def exact(self, logits: torch.Tensor) -> torch.Tensor:
        """Return which rows have every answer token as the most likely one, (rows,)."""
        wrong = (logits.argmax(-1) != self.targets).long()
        return torch.zeros(len(self.ids), dtype=torch.long).index_add_(0, self.rows, wrong) == 0


def collate(
    tokenizer: PreTrainedTokenizerBase, items: Sequence[tuple[int, Item]], chunks: int
) -> Iterator[Batch]:
    """Yield the items in `chunks` batches of similar length.

    The text of an item is its prompt (<bos> where it is empty), a space, its answer and <eos>. Rows
    are padded on the right, where causal attention never looks from an answer.
    """
    prompts = tokenizer([item.prompt or tokenizer.bos_token for _, item in items])["input_ids"]
    answers = tokenizer([f" {item.answer}" for _, item in items])["input_ids"]
    end = [tokenizer.eos_token_id]
    coded = [(p, a + end, t) for p, a, (t, _) in zip(prompts, answers, items, strict=True)]
    coded.sort(key=lambda coded_item: len(coded_item[0]) + len(coded_item[1]))
    size = -(-len(coded) // chunks)
    for start in range(0, len(coded), size):
        part = coded[start : start + size]
        longest = max(len(p) + len(a) for p, a, _ in part) - 1
        ids = torch.full((len(part), longest), tokenizer.pad_token_id)
        rows, columns, targets = [], [], []
        for row, (prompt, answer, _) in enumerate(part):
            text = (prompt + answer)[:-1]
            ids[row, : len(text)] = torch.tensor(text)
            rows += [row] * len(answer)
            columns += range(len(prompt) - 1, len(text))
            targets += answer
        yield Batch(
            ids,
            torch.tensor([task for _, _, task in part]),
            torch.tensor(rows),
            torch.tensor(columns),
            torch.tensor(targets),
        )


class AdaptiveSampler:
    """Draws more items of the tasks that the model still gets wrong."""

    def __init__(
        self, seed: int, *, compare_first: float = 0.0, floor: float = 0.15, memory: float = 0.97
    ) -> None:
        """Start with every task wrong.

        Args:
            seed: of all draws.
            compare_first: weight of the lesson that compares options until it is learned, while
                multiple choice of facts, which needs that lesson, has the smallest weight; 0 keeps
                all weights by accuracy.
            floor: weight of a task that is always answered right.
            memory: decay of the running accuracy.
        """
        self._rng = random.Random(seed)
        self._compare_first = compare_first
        self._floor, self._memory = floor, memory
        self.accuracy = [0.0] * len(COURSE)

    def draw(self, count: int, only: str | None = None) -> list[tuple[int, Item]]:
        """Return `count` training items, of one task if named, with the numbers of their tasks."""
        learned = dict(zip([task.name for task in COURSE], self.accuracy, strict=True))
        weights = {name: self._floor + 1 - accuracy for name, accuracy in learned.items()}
        if self._compare_first and learned["mc_same"] < 0.6:
            weights |= {
                "mc_same": self._compare_first,
                "mc_chemistry": self._floor,
                "mc_biology": self._floor,
            }
        if only is not None:
            weights = {name: float(name == only) for name in weights}
        numbers = self._rng.choices(range(len(COURSE)), list(weights.values()), k=count)
        return [(n, COURSE[n].sample(self._rng, held_out=False)) for n in numbers]

    def tell(self, tasks: torch.Tensor, right: torch.Tensor) -> None:
        """Update the running accuracies with the rows of a batch that were answered exactly."""
        for number in tasks.unique().tolist():
            share = right[tasks == number].float().mean().item()
            old = self.accuracy[number]
            self.accuracy[number] = self._memory * old + (1 - self._memory) * share
