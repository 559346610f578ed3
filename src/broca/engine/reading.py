"""Scores continuations by one forward pass for each batch; shared prefixes and layers run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from broca.engine.batches import Batch, plain_batch, shared_batches
from broca.engine.budget import Budget
from broca.engine.checks import require_finite
from broca.engine.prefixes import PrefixGroup, groups_that_fit, prefix_groups
from broca.engine.work import Masking, Reading, Store, longest_first
from broca.models import GatedModel
from broca.models.caches import left_padded
from broca.options import EngineOptions
from broca.tasks.items import LogLikelihood, Output

WORTH_REUSING = 0.1
"""Minimum share of saved work for which `auto` reuses lower layers."""


_KEPT_COST = 8
"""Cost of a token in the budget while the inputs of layers and projections are kept."""


@dataclass(frozen=True)
class _Intact:
    """The states of the intact model on some sequences, which rows with higher ablations reuse.

    Attributes:
        tokens: The sequences, left-padded, `(sequences, tokens)`.
        attention: Their attention mask.
        logits: Logits of the last positions, `(sequences, keep, vocabulary)`.
        inputs: Inputs of each decoder layer, `(sequences, tokens, hidden)`.
        mixed: Input of each layer's output projection, `(sequences, tokens, width)`.
    """

    tokens: Tensor
    attention: Tensor
    logits: Tensor
    inputs: list[Tensor | None]
    mixed: dict[int, Tensor | None]


class Reader:
    """Runs readings.

    Args:
        model: The model.
        budget: The token budget, shared with the rest of the engine.
        options: Which work is shared.
    """

    def __init__(self, model: GatedModel, budget: Budget, options: EngineOptions) -> None:
        self._model = model
        self._budget = budget
        self._options = options
        self.tokens = 0
        """Number of tokens that were read so far, padding excluded."""

    @torch.inference_mode()
    def run(self, work: Sequence[Reading], masking: Masking, store: Store) -> None:
        """Runs all readings; answers are stored batch by batch."""
        first = self._first_layers(masking)
        groups, alone = prefix_groups(
            work, self._options.share_prefixes, self._model.shares_prefixes
        )
        if self._saves_layers(work, first, otherwise=sum(group.saved for group in groups)):
            self._run_sweep(work, first, masking, store)
            return
        self._run_groups(groups, masking, store)
        batches = self._budget.in_batches(
            longest_first(alone),
            lambda rows: self._read(plain_batch(self._model, rows, masking)),
            length=lambda reading: reading.length,
        )
        for _, answers in batches:
            store(answers)

    def _run_groups(
        self, groups: Sequence[PrefixGroup[Reading]], masking: Masking, store: Store
    ) -> None:
        """Packs groups into batches: several small groups in one, a large group in several."""
        pending = sorted(groups, key=lambda group: len(group.prefix), reverse=True)
        while pending:
            prefix = len(pending[0].prefix)
            suffix = max(reading.length - len(g.prefix) for g in pending for reading in g.members)
            rows = self._budget.rows(suffix, cached=prefix)
            size = min(groups_that_fit(pending, rows), self._budget.rows(prefix))
            pack = pending[:size]
            result = self._budget.attempt(
                partial(self._read_groups, pack, masking, rows=rows),
                rows=sum(len(group.members) for group in pack),
            )
            if result is not None:
                store(*result)
                del pending[:size]

    def _read_groups(
        self, groups: Sequence[PrefixGroup[Reading]], masking: Masking, *, rows: int
    ) -> list[tuple[int, Output]]:
        batches = shared_batches(self._model, groups, masking, rows=rows)
        return [answer for batch in batches for answer in self._read(batch)]

    def _read(self, batch: Batch[Reading]) -> list[tuple[int, Output]]:
        with batch.gates:
            logits, _ = self._model.forward(
                batch.tokens, batch.attention, keep=longest_target(batch.work), cache=batch.cache
            )
        self.tokens += batch.read
        return scored(batch.work, logits)

    def skips_layers(self, work: Sequence[Reading], masking: Masking) -> bool:
        """Whether reusing lower layers saves enough to keep sequences together."""
        if self._options.reuse_layers == "off" or not work:
            return False
        skipped = self._skipped(work, self._first_layers(masking))
        return skipped >= WORTH_REUSING * sum(reading.length for reading in work)

    def _skipped(self, work: Sequence[Reading], first: Sequence[int]) -> float:
        """Returns the work below the first ablated layers, in tokens that pass all layers."""
        layers = self._model.structure.layers
        return sum(reading.length * first[reading.mask] / layers for reading in work)

    def _first_layers(self, masking: Masking) -> list[int]:
        """Returns the lowest layer that each mask changes; for the intact mask, the depth."""
        layer_of = torch.tensor(self._model.first_layers)
        untouched = self._model.structure.layers
        first: list[int] = torch.where(masking.gates != 1, layer_of, untouched).amin(1).tolist()
        return first

    def _saves_layers(
        self, work: Sequence[Reading], first: Sequence[int], *, otherwise: int
    ) -> bool:
        """Whether to run the layers below the first ablated layer once for each sequence.

        Args:
            work: All rows.
            first: First layer that each mask changes.
            otherwise: Number of tokens that sharing prefixes would save.
        """
        switch = self._options.reuse_layers
        if switch == "off":
            return False
        extra = sum(len(tokens) for tokens in {reading.tokens for reading in work})
        total = sum(reading.length for reading in work)
        saved = self._skipped(work, first) - extra
        worthwhile = switch == "on" or saved >= max(WORTH_REUSING * total, otherwise)
        longest = max((reading.length for reading in work), default=1)
        return worthwhile and self._model.sharing(longest).layers

    def _run_sweep(
        self, work: Sequence[Reading], first: Sequence[int], masking: Masking, store: Store
    ) -> None:
        """Runs each sequence once intact, then every row from its mask's first layer on."""
        by_sequence: dict[tuple[int, ...], list[Reading]] = {}
        for reading in work:
            by_sequence.setdefault(reading.tokens, []).append(reading)
        sequences = sorted(by_sequence.values(), key=lambda rows: rows[0].length, reverse=True)
        # the inputs of every layer are kept until its rows are done: count them too
        batches = self._budget.in_batches(
            sequences, self._read_intact, length=lambda rows: rows[0].length, cost=_KEPT_COST
        )
        for batch, intact in batches:
            self.tokens += int(intact.attention.sum())
            by_layer: dict[int, list[tuple[int, Reading]]] = {}
            for index, rows in enumerate(batch):
                for reading in rows:
                    by_layer.setdefault(first[reading.mask], []).append((index, reading))
            unchanged = by_layer.pop(self._model.structure.layers, [])
            if unchanged:
                logits = intact.logits
                index_of = torch.tensor([index for index, _ in unchanged], device=logits.device)
                store(scored([reading for _, reading in unchanged], logits[index_of]))
            for layer, placed in sorted(by_layer.items()):
                self._resume(placed, layer, intact, masking, store)

    def _read_intact(self, sequences: Sequence[list[Reading]]) -> _Intact:
        """Reads sequences under the intact mask, each given by its rows."""
        tokens, attention = left_padded(
            [rows[0].tokens for rows in sequences], device=self._model.device
        )
        keep = longest_target([reading for rows in sequences for reading in rows])
        with self._model.head_outputs() as mixed:
            logits, inputs = self._model.forward_with_layer_inputs(tokens, attention, keep=keep)
        by_layer = dict(zip(self._model.skippable, mixed, strict=True))
        return _Intact(tokens, attention, logits, inputs, by_layer)

    def _resume(
        self,
        rows: Sequence[tuple[int, Reading]],
        layer: int,
        intact: _Intact,
        masking: Masking,
        store: Store,
    ) -> None:
        """Runs rows from `layer` on, if possible from its output projection on.

        Args:
            rows: The rows, each with the index of its sequence.
            layer: First layer to run.
            intact: States of the intact model on every sequence.
            masking: Gates of every mask.
            store: Takes the answers.
        """
        tokens, attention = intact.tokens, intact.attention
        hidden, mixed = intact.inputs[layer], intact.mixed.get(layer)
        assert hidden is not None
        keep = longest_target([reading for _, reading in rows])

        def run(batch: Sequence[tuple[int, Reading]]) -> list[tuple[int, Output]]:
            work = [reading for _, reading in batch]
            index = torch.tensor([index for index, _ in batch], device=tokens.device)
            gates, replacement = masking.of(work)
            outputs = None if mixed is None else mixed[index.to(mixed.device)]
            with (
                self._model.gates(gates, replacement=replacement),
                self._model.resumed_at(layer, hidden[index.to(hidden.device)]),
                self._model.attention_taken_up(layer, outputs),
            ):
                logits, _ = self._model.forward(tokens[index], attention[index], keep=keep)
            return scored(work, logits)

        length = tokens.shape[1]
        for batch, answers in self._budget.in_batches(rows, run, length=lambda _: length):
            store(answers)
            self.tokens += sum(reading.length for _, reading in batch)


def longest_target(work: Sequence[Reading]) -> int:
    """Returns the number of tokens of the longest target: positions whose logits are needed."""
    return max(len(target) for reading in work for _, target in reading.targets)


def target_log_probabilities(
    work: Sequence[Reading], logits: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the log-probability of every target token.

    Args:
        work: The rows.
        logits: Logits of the last positions, `(rows, keep, vocabulary)`.

    Returns:
        Log-probabilities `(targets, width)` with zeros before a target's first token, whether
        each token is the most probable one (true before the first), and 1 for tokens of targets.
    """
    rows = [row for row, reading in enumerate(work) for _ in reading.targets]
    targets = [target for reading in work for _, target in reading.targets]
    # pad every target on the left, so that its last token is at the last position
    tokens, present = left_padded(targets, device=logits.device)
    chosen = logits[:, -tokens.shape[1] :]
    if rows != list(range(len(work))):  # rows with one target need no copy
        chosen = chosen[torch.tensor(rows, device=logits.device)]
    chosen = chosen.to(torch.promote_types(chosen.dtype, torch.float32))
    log_probabilities = chosen.gather(-1, tokens[..., None])[..., 0] - chosen.logsumexp(-1)
    greedy = (chosen.argmax(-1) == tokens) | (present == 0)
    return log_probabilities * present, greedy, present


def scored(work: Sequence[Reading], logits: Tensor) -> list[tuple[int, Output]]:
    """Turns logits of the last positions into answers."""
    require_finite(logits, [reading.targets[0][0] for reading in work])
    log_probabilities, greedy, _ = target_log_probabilities(work, logits)
    positions = [position for reading in work for position, _ in reading.targets]
    return [
        (position, LogLikelihood(total, is_greedy))
        for position, total, is_greedy in zip(
            positions, log_probabilities.sum(-1).tolist(), greedy.all(-1).tolist(), strict=True
        )
    ]
