"""Scores continuations by one forward pass for each batch; shared prefixes and layers run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from broca.engine.batches import Batch, plain_batch, shared_batches
from broca.engine.budget import Budget
from broca.engine.checks import require_finite
from broca.engine.prefixes import PrefixGroup, groups_that_fit, prefix_groups
from broca.engine.work import Masking, Reading, Store, left_padded, longest_first
from broca.models import GatedModel
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
        logits: Logits of the last positions, `(sequences, keep, vocabulary)`.
        inputs: Inputs of each decoder layer, `(sequences, tokens, hidden)`.
        mixed: Input of each layer's output projection, `(sequences, tokens, width)`.
    """

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
        groups, alone = prefix_groups(work, self._options.share_prefixes)
        if self._saves_layers(work, first, otherwise=sum(group.saved for group in groups)):
            self._run_sweep(work, first, masking, store)
            return
        self._run_groups(groups, masking, store)
        pending = longest_first(alone)
        while pending:
            size = min(len(pending), self._budget.rows(pending[0].length))

            def plain(batch: list[Reading] = pending[:size]) -> None:
                store(self._read(plain_batch(self._model, batch, masking)))

            if self._budget.attempt(plain, rows=size):
                del pending[:size]

    def _run_groups(
        self, groups: Sequence[PrefixGroup[Reading]], masking: Masking, store: Store
    ) -> None:
        """Packs groups into batches: several small groups in one, a large group in several."""
        pending = sorted(groups, key=lambda group: len(group.prefix), reverse=True)
        while pending:
            prefix = len(pending[0].prefix)
            suffix = max(one.length - len(g.prefix) for g in pending for one in g.members)
            rows = self._budget.rows(suffix, cached=prefix)
            together = min(groups_that_fit(pending, rows), self._budget.rows(prefix))

            def shared(
                pack: list[PrefixGroup[Reading]] = pending[:together], rows: int = rows
            ) -> None:
                found: list[tuple[int, Output]] = []
                for batch in shared_batches(self._model, pack, masking, rows=rows):
                    found += self._read(batch)
                store(found)

            at_stake = sum(len(group.members) for group in pending[:together])
            if self._budget.attempt(shared, rows=at_stake):
                del pending[:together]

    def _read(self, batch: Batch[Reading]) -> list[tuple[int, Output]]:
        keep = max(len(target) for one in batch.work for _, target in one.targets)
        with batch.gates:
            logits, _ = self._model.forward(
                batch.tokens, batch.attention, keep=keep, cache=batch.cache
            )
        self.tokens += batch.read
        return scored(batch.work, logits)

    def skips_layers(self, work: Sequence[Reading], masking: Masking) -> bool:
        """Whether reusing lower layers saves enough to keep sequences together."""
        if self._options.reuse_layers == "off" or not work:
            return False
        first, layers = self._first_layers(masking), self._model.structure.layers
        skipped = sum(one.length * first[one.mask] / layers for one in work)
        return skipped >= WORTH_REUSING * sum(one.length for one in work)

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
        layers = self._model.structure.layers
        skipped = sum(one.length * first[one.mask] / layers for one in work)
        extra = sum(len(tokens) for tokens in {one.tokens for one in work})
        whole = sum(one.length for one in work)
        saved = skipped - extra
        wanted = switch == "on" or saved >= max(WORTH_REUSING * whole, otherwise)
        return wanted and self._model.resumable

    def _run_sweep(
        self, work: Sequence[Reading], first: Sequence[int], masking: Masking, store: Store
    ) -> None:
        """Runs each sequence once intact, then every row from its mask's first layer on."""
        by_sequence: dict[tuple[int, ...], list[Reading]] = {}
        for one in work:
            by_sequence.setdefault(one.tokens, []).append(one)
        pending = sorted(by_sequence.values(), key=lambda rows: rows[0].length, reverse=True)
        while pending:
            # the inputs of every layer are kept until its rows are done: count them too
            size = min(len(pending), self._budget.rows(_KEPT_COST * pending[0][0].length))
            some = pending[:size]
            tokens, attention = left_padded([r[0].tokens for r in some], device=self._model.device)
            keep = max(len(target) for r in some for one in r for _, target in one.targets)
            intact: list[_Intact] = []

            def read(
                tokens: Tensor = tokens,
                attention: Tensor = attention,
                keep: int = keep,
                found: list[_Intact] = intact,
            ) -> None:
                found.append(self._read_intact(tokens, attention, keep))

            if not self._budget.attempt(read, rows=size):
                continue
            del pending[:size]
            self.tokens += int(attention.sum())
            (whole,) = intact
            by_layer: dict[int, list[tuple[int, Reading]]] = {}
            for index, rows in enumerate(some):
                for one in rows:
                    by_layer.setdefault(first[one.mask], []).append((index, one))
            unchanged = by_layer.pop(self._model.structure.layers, [])
            if unchanged:
                logits = whole.logits
                index_of = torch.tensor([index for index, _ in unchanged], device=logits.device)
                store(scored([one for _, one in unchanged], logits[index_of]))
            for layer, placed in sorted(by_layer.items()):
                self._resume(placed, layer, whole, tokens, attention, masking, store)

    def _read_intact(self, tokens: Tensor, attention: Tensor, keep: int) -> _Intact:
        with self._model.head_outputs() as mixed:
            logits, inputs = self._model.forward_with_layer_inputs(tokens, attention, keep=keep)
        return _Intact(logits, inputs, dict(zip(self._model.skippable, mixed, strict=True)))

    def _resume(
        self,
        pending: list[tuple[int, Reading]],
        layer: int,
        whole: _Intact,
        tokens: Tensor,
        attention: Tensor,
        masking: Masking,
        store: Store,
    ) -> None:
        """Runs rows from `layer` on, if possible from its output projection on.

        Args:
            pending: The rows, each with the index of its sequence.
            layer: First layer to run.
            whole: States of the intact model on every sequence.
            tokens: The sequences, left-padded, `(sequences, tokens)`.
            attention: Their attention mask.
            masking: Gates of every mask.
            store: Takes the answers.
        """
        keep = max(len(target) for _, one in pending for _, target in one.targets)
        hidden, mixed = whole.inputs[layer], whole.mixed.get(layer)
        assert hidden is not None
        while pending:
            size = min(len(pending), self._budget.rows(tokens.shape[1]))
            work = [one for _, one in pending[:size]]
            index = torch.tensor([index for index, _ in pending[:size]], device=tokens.device)

            def run(work: list[Reading] = work, index: Tensor = index) -> None:
                gates, replacement = masking.of(work)
                outputs = None if mixed is None else mixed[index.to(mixed.device)]
                with (
                    self._model.gates(gates, replacement=replacement),
                    self._model.resumed_at(layer, hidden[index.to(hidden.device)]),
                    self._model.attention_taken_up(layer, outputs),
                ):
                    logits, _ = self._model.forward(tokens[index], attention[index], keep=keep)
                store(scored(work, logits))

            if self._budget.attempt(run, rows=size):
                self.tokens += sum(one.length for one in work)
                del pending[:size]


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
    rows = [row for row, one in enumerate(work) for _ in one.targets]
    targets = [target for one in work for _, target in one.targets]
    # pad every target on the left, so that its last token is at the last position
    wanted, present = left_padded(targets, device=logits.device)
    chosen = logits[:, -wanted.shape[1] :]
    if rows != list(range(len(work))):  # rows with one target need no copy
        chosen = chosen[torch.tensor(rows, device=logits.device)]
    chosen = chosen.to(torch.promote_types(chosen.dtype, torch.float32))
    found = chosen.gather(-1, wanted[..., None])[..., 0] - chosen.logsumexp(-1)
    greedy = (chosen.argmax(-1) == wanted) | (present == 0)
    return found * present, greedy, present


def scored(work: Sequence[Reading], logits: Tensor) -> list[tuple[int, Output]]:
    """Turns logits of the last positions into answers."""
    require_finite(logits, [one.targets[0][0] for one in work])
    found, greedy, _ = target_log_probabilities(work, logits)
    positions = [position for one in work for position, _ in one.targets]
    return [
        (position, LogLikelihood(total, is_greedy))
        for position, total, is_greedy in zip(
            positions, found.sum(-1).tolist(), greedy.all(-1).tolist(), strict=True
        )
    ]
