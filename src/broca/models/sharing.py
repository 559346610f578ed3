"""What the rows of a batch may share, proved on the loaded model.

Padding, cached prefixes, running batches and lower layers are shared only where a test on random
tokens shows that every row's log-probabilities stay what they are in the plain model, one row at a
time. Rules that look at positions (windows, chunks, scaled rotary embeddings) begin to matter at
some length: the proof holds for rows up to its length, and longer rows need a longer proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from broca.errors import first_line
from broca.models.caches import (
    Reread,
    continuations,
    join,
    left_padded,
    select_rows,
    trim_left,
)
from broca.models.caches import is_plain as is_plain_cache
from broca.models.structure import adapted_matrix, is_plain, is_projection

if TYPE_CHECKING:
    from broca.models.gated import GatedModel

SHORTEST = 16
"""Length of the shortest proof, in tokens."""

AT_LOAD = 64
"""Length of the proof when a model is loaded."""

_GIVEN = (3, 1, 3, 2)
"""Number of last tokens of every row of the test that are given one at a time."""

_COMPARED = 5
"""Number of positions before them that are compared."""

_QUANTIZED = 1e-1
"""Tolerance for quantized weights, whose kernels round their inputs."""

_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Largest difference of log-probabilities, relative to their spread, that counts as equal."""


@dataclass(frozen=True)
class Sharing:
    """What was proved for rows up to some length.

    Attributes:
        padding: Rows of unequal lengths, padded on the left, are read and decoded together.
        joining: Padding is trimmed and rows enter a running batch.
        prefixes: A cached prefix is read once for several rows.
        layers: Layers below the first ablated one are run once for several masks.
        details: What was measured, or the exception, for each of them by name.
        seconds: Time of the proof.
    """

    padding: bool
    joining: bool
    prefixes: bool
    layers: bool
    details: dict[str, str]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether everything may be shared."""
        return self.padding and self.joining and self.prefixes and self.layers


WAYS = {
    "padding": "rows of unequal lengths run together",
    "joining": "rows enter a running batch",
    "prefixes": "a shared prefix is read once",
    "layers": "layers below the ablated ones are run once",
}
"""What is said of each way of sharing in `broca scan`."""


def proof_length(length: int) -> int:
    """Returns the length of the proof that rows of `length` tokens need: a power of two."""
    return max(SHORTEST, 1 << (length - 1).bit_length())


@torch.no_grad()
def prove(model: GatedModel, length: int) -> Sharing:
    """Tests what rows of up to `length` tokens may share, within `in_use`.

    Args:
        model: The model; its components must be intact.
        length: Length of the longest row of the test.
    """
    start = time.perf_counter()
    test = _Test(model, length)
    results: dict[str, bool] = {}
    details: dict[str, str] = {}

    def ask(name: str, check: Callable[[], dict[int, Tensor]]) -> None:
        if not results.get("padding", True):
            results[name], details[name] = False, "not without padding"
            return
        try:
            results[name], details[name] = test.agrees(check())
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # the code of a model may raise anything
            results[name], details[name] = False, f"{type(error).__name__}: {first_line(error)}"

    ask("padding", partial(test.decoded, test.padded, [(0, 2, 3), (1,)]))
    ask("joining", partial(test.decoded, test.padded, [(0, 1, 2)], joined=3))
    ask("prefixes", partial(test.decoded, test.shared, [(0, 1, 2)]))
    ask("layers", test.resumed)
    return Sharing(**results, details=details, seconds=time.perf_counter() - start)


def tolerance_of(model: GatedModel) -> float:
    """Returns the largest relative difference that counts as equal on this model."""
    quantized = getattr(model.model.config, "quantization_config", None) is not None
    quantized = quantized or any(
        is_projection(point.module) and not _holds_plain_weights(point.module)
        for point in model.points
    )
    return _QUANTIZED if quantized else _TOLERANCE.get(model.dtype, 1e-1)


def _holds_plain_weights(module: nn.Module) -> bool:
    weight = getattr(adapted_matrix(module) or module, "weight", None)
    return isinstance(weight, Tensor) and (is_plain(weight) or weight.is_meta)


@dataclass
class _Batch:
    """Rows of the test that run together.

    Attributes:
        rows: Numbers of the rows.
        tokens: Their new tokens, `(rows, new)`.
        attention: 1 for tokens and 0 for padding, `(rows, past + new)`.
        cache: Keys and values of the past tokens; None without past tokens.
    """

    rows: list[int]
    tokens: Tensor
    attention: Tensor
    cache: Any


class _Test:
    """Four rows under three masks: two behind a long prefix, one behind a short one, one short row.

    The last tokens of every row are given one at a time; a row leaves its batch after them.

    Args:
        model: The model.
        length: Length of the longest row.
    """

    def __init__(self, model: GatedModel, length: int) -> None:
        self._model = model
        generator = torch.Generator().manual_seed(4)

        def draw(count: int) -> list[int]:
            return torch.randint(0, model.vocabulary, (count,), generator=generator).tolist()

        long, short = draw(length * 5 // 8), draw(length // 4)
        self._prefixes, self._group = (long, short), (0, 0, 1)
        self._rows = [
            long + draw(length - len(long)),
            long + draw(max(_GIVEN[1] + 1, length // 8)),
            short + draw(_GIVEN[2] + 1),
            draw(_GIVEN[3] + 2),
        ]
        masks = torch.rand(3, len(model.components), generator=generator) > 0.1
        self._gates = masks.float()[[0, 0, 1, 2]]
        alone = [self._alone(row) for row in range(len(self._rows))]
        self._reference = [single for single, _ in alone]
        self._noise = max(noise for _, noise in alone)
        values = torch.cat(self._reference)
        self._spread = float(values[values.isfinite()].std().nan_to_num(0)) + 1e-12

    def _alone(self, row: int) -> tuple[Tensor, float]:
        """Returns a row's last log-probabilities in the plain model, `(positions, vocabulary)`.

        They come with their largest difference from those in a batch of two equal rows.
        """
        keep = min(_COMPARED + _GIVEN[row], len(self._rows[row]))
        both = []
        for copies in (1, 2):
            tokens = torch.tensor([self._rows[row]] * copies, device=self._model.device)
            with self._model.gates(self._gates[[row] * copies]):
                logits, _ = self._model.forward(tokens, torch.ones_like(tokens), keep=keep)
            both.append(_log_probabilities(logits))
        return both[0][0], float((both[1] - both[0]).nan_to_num(0).abs().max())

    def agrees(self, measured: dict[int, Tensor]) -> tuple[bool, str]:
        """Compares the last log-probabilities of rows with those of the plain model."""
        worst = 0.0
        for row, values in measured.items():
            reference = self._reference[row][-len(values) :]
            equal = (values == reference) | (values.isnan() & reference.isnan())
            difference = torch.where(equal, 0.0, (values - reference).abs())
            worst = max(worst, float(difference.nan_to_num(torch.inf).max()))
        allowed = max(tolerance_of(self._model) * self._spread, 4 * self._noise)
        return worst <= allowed, f"largest difference {worst:.2g}, tolerance {allowed:.2g}"

    def padded(self, rows: Sequence[int]) -> list[_Batch]:
        """Lays out rows without their given tokens, padded on the left."""
        sequences = [self._read(row) for row in rows]
        return [_Batch(list(rows), *left_padded(sequences, device=self._model.device), None)]

    def shared(self, rows: Sequence[int]) -> Iterator[_Batch]:
        """Lays out rows without their given tokens behind prefixes that are read once."""
        tokens, attention = left_padded(self._prefixes, device=self._model.device)
        with self._model.gates(self._gates[[self._group.index(0), self._group.index(1)]]):
            _, cache = self._model.forward(tokens, attention, keep=1, use_cache=True)
        if isinstance(cache, Reread):
            raise RuntimeError("the model has no cache")
        members = [(self._group[row], self._read(row)) for row in rows]
        lengths = [len(prefix) for prefix in self._prefixes]
        for members_in, *batch in continuations(
            cache, lengths, members, rows=len(rows), device=self._model.device
        ):
            yield _Batch([rows[member] for member in members_in], *batch)

    def _read(self, row: int) -> list[int]:
        return self._rows[row][: -_GIVEN[row]]

    def decoded(
        self,
        layout: Callable[[Sequence[int]], Iterable[_Batch]],
        groups: Sequence[Sequence[int]],
        *,
        joined: int | None = None,
    ) -> dict[int, Tensor]:
        """Reads rows and then their given tokens one at a time.

        Args:
            layout: Makes batches of rows.
            groups: The rows; a batch has rows of one group.
            joined: A row that enters the batch after its first step. Then padding is trimmed too.

        Returns:
            Log-probabilities of each row, `(positions, vocabulary)`.
        """
        measured: dict[int, list[Tensor]] = {}
        for batch in (batch for rows in groups for batch in layout(rows)):
            running, left = self._prefilled(batch, measured), dict(enumerate(_GIVEN))
            while running.rows:
                with self._model.gates(self._gates[running.rows]):
                    logits, running.cache = self._model.forward(
                        torch.tensor(
                            [[self._rows[row][-left[row]]] for row in running.rows],
                            device=self._model.device,
                        ),
                        nn.functional.pad(running.attention, (0, 1), value=1),
                        keep=1,
                        cache=running.cache,
                        use_cache=True,
                    )
                running.attention = nn.functional.pad(running.attention, (0, 1), value=1)
                for row, value in zip(running.rows, logits, strict=True):
                    measured[row].append(_log_probabilities(value))
                    left[row] -= 1
                stay = [at for at, row in enumerate(running.rows) if left[row]]
                if len(stay) < len(running.rows):
                    self._keep(running, stay, trim=joined is not None)
                if joined is not None and joined not in measured:
                    if not is_plain_cache(running.cache):
                        raise RuntimeError("its cache does not keep an entry for each token")
                    (entering,) = layout([joined])
                    other = self._prefilled(entering, measured)
                    running.attention = join(
                        running.cache, running.attention, other.cache, other.attention
                    )
                    running.rows += other.rows
        return {row: torch.cat(values) for row, values in measured.items()}

    def _prefilled(self, batch: _Batch, measured: dict[int, list[Tensor]]) -> _Batch:
        """Reads the new tokens of a batch."""
        with self._model.gates(self._gates[batch.rows]):
            logits, batch.cache = self._model.forward(
                batch.tokens, batch.attention, keep=_COMPARED, cache=batch.cache, use_cache=True
            )
        present = batch.attention[:, -logits.shape[1] :].bool()
        for row, values, tokens in zip(batch.rows, logits, present, strict=True):
            measured[row] = [_log_probabilities(values[tokens])]
        return batch

    @staticmethod
    def _keep(batch: _Batch, rows: list[int], *, trim: bool) -> None:
        index = torch.tensor(rows, device=batch.attention.device, dtype=torch.long)
        batch.rows = [batch.rows[row] for row in rows]
        if rows:
            select_rows(batch.cache, index)
            batch.attention = batch.attention[index]
            if trim:
                batch.attention = trim_left(batch.cache, batch.attention)

    def resumed(self) -> dict[int, Tensor]:
        """Runs a padded batch from a middle layer on, and its attention from its projection on."""
        model = self._model
        if not model.resumable:
            raise RuntimeError("layers cannot be skipped")
        tokens, attention = left_padded(self._rows, device=model.device)
        with model.head_outputs() as mixed:
            _, inputs = model.forward_with_layer_inputs(tokens, attention, keep=1)
        middle = model.structure.layers // 2
        outputs = dict(zip(model.skippable, mixed, strict=True)).get(middle)
        hidden = inputs[middle]
        assert hidden is not None
        gates = self._gates.clone()
        gates[:, torch.tensor(model.first_layers) < middle] = 1
        with model.gates(gates):
            whole, _ = model.forward(tokens, attention, keep=_COMPARED)
            with model.resumed_at(middle, hidden), model.attention_taken_up(middle, outputs):
                logits, _ = model.forward(tokens, attention, keep=_COMPARED)
        measured = {}
        for row, reference in enumerate(self._reference):
            last = slice(-min(_COMPARED, len(self._rows[row])), None)
            change = _log_probabilities(logits[row, last]) - _log_probabilities(whole[row, last])
            measured[row] = reference[last] + change
        return measured


def _log_probabilities(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits.float(), dim=-1)
