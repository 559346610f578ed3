"""Scores continuations, sharing prefixes and layers, and differentiates margins by the gates."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from broca.engine import batches
from broca.engine.batches import Batch, Lane, Work
from broca.models.caches import left_padded
from broca.tasks.items import LogLikelihood, Margin, Output

WORTH_REUSING = 0.1
"""Minimum share of saved work for which `auto` reuses lower layers."""

_KEPT_COST = 8
"""Cost of a token in the budget while inputs of layers are kept, or what a gradient needs."""

_POSITIONS = 64
"""Number of positions whose logits are summed together: so many fit a processor's cache."""

Store = Callable[[Sequence[tuple[int, Output]]], None]
"""Receives answers: position of the request, and its answer."""

MarginRow = tuple[Margin, int, int]
"""A margin, its row of the gates, and its row of the donors."""


@dataclass(frozen=True)
class _Intact:
    """The states of the intact model on some sequences, which rows with higher ablations reuse.

    Attributes:
        tokens: The sequences, left-padded, `(sequences, tokens)`.
        attention: Their attention mask.
        logits: Logits of the last positions that intact rows need, `(positions, vocabulary)`.
        ends: Number of positions up to each sequence's last.
        inputs: Input of each decoder layer, `(sequences, tokens, hidden)`.
        heads: Outputs of the heads of layers that can be resumed there, `(sequences, tokens,
            width)`.
    """

    tokens: Tensor
    attention: Tensor
    logits: Tensor
    ends: list[int]
    inputs: dict[int, Tensor]
    heads: dict[int, Tensor]


class Reader:
    """Runs the readings of a job on a lane.

    Args:
        lane: The model and its budget.
        masks: Gates of every mask, `(masks, components)`.
        store: Receives the answers, batch by batch.
    """

    def __init__(self, lane: Lane, masks: Tensor, store: Store) -> None:
        self._lane, self._masks, self._store = lane, masks, store
        self._model, self._budget = lane.model, lane.budget
        layer_of, depth = torch.tensor(lane.model.first_layers), lane.model.structure.layers
        self._first: list[int] = torch.where(masks != 1, layer_of, depth).amin(1).tolist()
        """The lowest layer that each mask changes; for the intact mask, the depth."""

    @torch.inference_mode()
    def run(self, work: Sequence[Work]) -> None:
        """Runs all readings."""
        groups, alone = batches.prefix_groups(self._model, work, self._lane.options.share_prefixes)
        if self.saves_layers(work, otherwise=sum(group.saved for group in groups)):
            self._sweep(work)
            return
        while groups:  # several small groups in a batch, a large group in several
            size, rows = batches.groups_that_fit(self._budget, groups)
            pack = groups[: min(size, self._budget.rows(len(groups[0].prefix)))]
            with self._budget.attempt(min(rows, sum(len(group.members) for group in pack))):
                shared = batches.shared_batches(self._lane, self._masks, pack, rows=rows)
                self._store([answer for batch in shared for answer in self._read(batch)])
                del groups[: len(pack)]
        alone = batches.longest_first(alone)
        while alone:
            together = self._budget.batch(alone, lambda reading: reading.length)
            with self._budget.attempt(len(together)):
                self._store(self._read(batches.plain_batch(self._lane, self._masks, together)))
                del alone[: len(together)]

    def _read(self, batch: Batch) -> list[tuple[int, Output]]:
        targets = [reading.target for reading in batch.work]
        with batch.gates:
            logits, _ = self._model.forward(
                batch.tokens, batch.attention, keep=targets, cache=batch.cache
            )
        self._lane.tokens += batch.read
        return scored(batch.work, logits)

    def saves_layers(self, work: Sequence[Work], *, otherwise: int | None = None) -> bool:
        """Whether to run the layers below the first ablated layer once for each sequence.

        Args:
            work: All rows.
            otherwise: Number of tokens that sharing prefixes would save; if None, whether sequences
                are worth keeping together in a lane.
        """
        switch = self._lane.options.reuse_layers
        if switch == "off" or not work:
            return False
        depth = self._model.structure.layers
        # the work below the first ablated layers, in tokens that pass all layers
        skipped = sum(reading.length * self._first[reading.mask] / depth for reading in work)
        needed = WORTH_REUSING * sum(reading.length for reading in work)
        if otherwise is None:
            return skipped >= needed
        extra = sum(len(tokens) for tokens in {reading.tokens for reading in work})
        longest = max(reading.length for reading in work)
        worthwhile = switch == "on" or skipped - extra >= max(needed, otherwise)
        return worthwhile and self._model.sharing(longest).layers

    def _sweep(self, work: Sequence[Work]) -> None:
        """Runs each sequence once intact, then every row from its mask's first layer on."""
        by_sequence: dict[tuple[int, ...], list[Work]] = {}
        for reading in work:
            by_sequence.setdefault(reading.tokens, []).append(reading)
        sequences = sorted(by_sequence.values(), key=lambda rows: rows[0].length, reverse=True)
        while sequences:
            # the inputs of every layer are kept until its rows are done: count them too
            batch = self._budget.batch(sequences, lambda rows: rows[0].length, cost=_KEPT_COST)
            intact = None
            with self._budget.attempt(len(batch)):
                intact = self._read_intact(batch)
            if intact is not None:  # memory sufficed
                del sequences[: len(batch)]
                self._lane.tokens += int(intact.attention.sum())
                self._finish(batch, intact)

    def _finish(self, sequences: Sequence[list[Work]], intact: _Intact) -> None:
        """Runs the rows of sequences, each from the lowest layer that its mask changes."""
        by_layer: dict[int, list[tuple[int, Work]]] = {}
        for index, rows in enumerate(sequences):
            for reading in rows:
                by_layer.setdefault(self._first[reading.mask], []).append((index, reading))
        unchanged = by_layer.pop(self._model.structure.layers, [])
        if unchanged:
            places = [
                place
                for index, reading in unchanged
                for place in range(intact.ends[index] - reading.target, intact.ends[index])
            ]
            self._store(scored([reading for _, reading in unchanged], intact.logits[places]))
        for layer, placed in sorted(by_layer.items()):
            self._resume(placed, layer, intact)

    def _read_intact(self, sequences: Sequence[list[Work]]) -> _Intact:
        """Reads sequences under the intact mask, each given by its rows."""
        tokens, attention = left_padded(
            [rows[0].tokens for rows in sequences], device=self._model.device
        )
        depth = self._model.structure.layers
        keep = [
            max((row.target for row in rows if self._first[row.mask] == depth), default=0)
            for rows in sequences
        ]
        resumption = self._model.resumption
        with resumption.layer_inputs() as inputs, resumption.head_outputs() as heads:
            logits, _ = self._model.forward(tokens, attention, keep=keep)
        return _Intact(tokens, attention, logits, list(accumulate(keep)), inputs, heads)

    def _resume(self, rows: list[tuple[int, Work]], layer: int, intact: _Intact) -> None:
        """Runs rows, each with the index of its sequence, from a layer on.

        Where possible the layer's attention starts at its output projection.
        """
        tokens, attention = intact.tokens, intact.attention
        hidden, heads = intact.inputs[layer], intact.heads.get(layer)
        length = tokens.shape[1]
        while rows:
            batch = self._budget.batch(rows, lambda _: length)
            work = [reading for _, reading in batch]
            with self._budget.attempt(len(batch)):
                index = torch.tensor([index for index, _ in batch], device=tokens.device)
                outputs = None if heads is None else heads[index.to(heads.device)]
                with (
                    self._lane.gates(self._masks, work),
                    self._model.resumption.at(layer, hidden[index.to(hidden.device)], outputs),
                ):
                    logits, _ = self._model.forward(
                        tokens[index], attention[index], keep=[row.target for row in work]
                    )
                self._store(scored(work, logits))
                del rows[: len(batch)]
                self._lane.tokens += sum(reading.length for reading in work)


def target_log_probabilities(
    work: Sequence[Work], logits: Tensor, numbers: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Returns the log-probability of every target token, in pairs if its request says so.

    Args:
        work: The rows.
        logits: Logits of the last positions of each, `(positions, vocabulary)`, row by row.
        numbers: Number of every row, for the message of an error.

    Returns:
        Log-probabilities `(targets, width)` with zeros before a target's first token, and whether
        each token is the most probable one (true before the first).

    Raises:
        BadLogits: Logits are NaN or infinite.
    """
    ends = accumulate(reading.target for reading in work)
    last = [end for end, reading in zip(ends, work, strict=True) for _ in reading.targets]
    targets = [target for reading in work for _, target in reading.targets]
    # pad every target on the left, so that its last token is at its row's last position
    tokens, present = left_padded(targets, device=logits.device)
    width = tokens.shape[1]
    places = (torch.tensor(last)[:, None] + torch.arange(-width, 0)).clamp(min=0).to(tokens.device)
    wide = torch.promote_types(logits.dtype, torch.float32)
    parts = [part.to(wide) for part in torch.split(logits, _POSITIONS)]
    totals = torch.cat([part.logsumexp(-1) for part in parts])
    best = torch.cat([part.argmax(-1) for part in parts])
    greedy = (best[places] == tokens) | (present == 0)
    rows = [number for number, row in zip(numbers, work, strict=True) for _ in range(row.target)]
    batches.require_finite(totals.detach()[:, None, None], rows)
    of_tokens = logits[places, tokens].to(wide)
    values = of_tokens - totals[places]
    paired = [reading.request.paired for reading in work for _ in reading.targets]
    if any(paired):
        top = [part.topk(2, -1) for part in parts]
        first, second = torch.cat([values for values, _ in top])[places].unbind(-1)
        own = torch.cat([order[:, 0] for _, order in top])[places] == tokens  # not `best` in ties
        beside = logsigmoid(of_tokens - torch.where(own, second, first))
        values = beside.where(torch.tensor(paired, device=values.device)[:, None], values)
    return values.where(present == 1, 0.0), greedy


def scored(work: Sequence[Work], logits: Tensor) -> list[tuple[int, Output]]:
    """Turns logits of the last positions of rows into answers."""
    first = [reading.position for reading in work]
    log_probabilities, greedy = target_log_probabilities(work, logits, first)
    positions = [position for reading in work for position, _ in reading.targets]
    values, best = log_probabilities.sum(-1).tolist(), greedy.all(-1).tolist()
    return [
        (position, LogLikelihood(total, is_greedy))
        for position, total, is_greedy in zip(positions, values, best, strict=True)
    ]


def differentiate(
    lane: Lane, masks: Tensor, rows: Sequence[MarginRow]
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Computes margins of rows and their gradients with respect to the gates.

    Args:
        lane: The model, whose weights are frozen, and its budget.
        masks: Gates of every mask, `(masks, components)`.
        rows: The rows.

    Returns:
        Margins `(rows,)`, and their gradients `(rows, components)`.
    """
    margins = np.empty(len(rows))
    gradients = np.empty((len(rows), len(lane.model.components)), dtype=np.float32)
    lengths = [
        sum(len(request.context) + len(request.continuation) for request in margin.requests)
        for margin, _, _ in rows
    ]
    pending = sorted(range(len(rows)), key=lengths.__getitem__, reverse=True)
    while pending:
        batch = lane.budget.batch(pending, lengths.__getitem__, cost=_KEPT_COST)
        with lane.budget.attempt(len(batch), recomputable=True):
            found = _differentiated(lane, masks, rows, batch, padded=True)
            if not np.isfinite(found[1]).all():  # a kernel may fail on padding in backward passes
                found = _differentiated(lane, masks, rows, batch, padded=False)
            margins[batch], gradients[batch] = found
            del pending[: len(batch)]
    return margins, gradients


@torch.enable_grad()
def _differentiated(
    lane: Lane, masks: Tensor, all_rows: Sequence[MarginRow], places: Sequence[int], *, padded: bool
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Computes the margins and gradients of rows that fit memory together, padded or by length."""
    rows = [all_rows[place] for place in places]
    requests = [margin.requests for margin, _, _ in rows]
    readings, _ = batches.work_of(requests, range(len(rows)), [donor for _, _, donor in rows])
    work = batches.longest_first(readings)
    leaf = masks[[mask for _, mask, _ in rows]].to(lane.model.device)
    leaf.requires_grad_()
    totals = [leaf.new_empty(0)] * sum(map(len, requests))
    start = 0
    while start < len(work):
        lengths = [reading.length for reading in work[start:]]
        together = lane.budget.padded_together(lengths) if padded else lengths.count(lengths[0])
        chunk = work[start : start + together]
        tokens, attention = left_padded([r.tokens for r in chunk], device=lane.model.device)
        gates = partial(lane.gates, leaf, chunk)
        recompute = lane.model.resumption.in_backward if lane.budget.recompute else nullcontext
        with gates(), recompute(gates):
            logits, _ = lane.model.forward(tokens, attention, keep=[row.target for row in chunk])
        numbers = [places[reading.mask] for reading in chunk]
        likely = iter(target_log_probabilities(chunk, logits, numbers)[0].sum(-1))
        for reading in chunk:
            for position, _ in reading.targets:
                totals[position] = next(likely)
        start += together
    lane.tokens += sum(reading.length for reading in work)
    of_row = iter(totals)
    margins = torch.stack(
        [margin.of(torch.stack([*islice(of_row, len(margin.requests))])) for margin, _, _ in rows]
    )
    (gradient,) = torch.autograd.grad(margins.sum(), leaf)
    return margins.detach().double().cpu().numpy(), gradient.float().cpu().numpy()
