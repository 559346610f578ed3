"""The engine: answers requests under masks, every row of a batch with its own.

It knows requests and gates, and nothing of tasks' metrics or of searches.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from broca.engine.batching import Work, left_padded, longest_first, next_batch
from broca.engine.stopping import StopRule
from broca.errors import BadLogits
from broca.models import ActiveGates, GatedModel
from broca.tasks.items import Generation, LogLikelihood, Output, Request

COMPACTION_SHARE = 1 / 8
"""Share of ended generations at which a batch is cut down to the others."""


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        done: Requests answered in this run.
        total: Requests of this run.
        tokens: Tokens that the model has read or written in this run, padding excluded.
    """

    done: int
    total: int
    tokens: int


@dataclass(frozen=True)
class _Pass:
    """One sequence to read under one mask, and what is asked of its last positions."""

    mask: int
    tokens: tuple[int, ...]
    targets: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)


@dataclass(frozen=True)
class _Decoding:
    """One generation under one mask."""

    mask: int
    position: int
    request: Request


class Engine:
    """Runs requests on a gated model.

    Args:
        model: The model.
        token_budget: Most tokens of a batch, padding included; found from the free memory by
            default. Halved, and the batch run again, when memory runs out.
        on_progress: Called after every batch.
    """

    def __init__(
        self,
        model: GatedModel,
        *,
        token_budget: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._model = model
        self._budget = token_budget or default_token_budget(model)
        self._on_progress = on_progress
        self._stop = StopRule(model.tokenizer, _eos_tokens(model))
        self.tokens = 0
        """Tokens that the model has read or written so far, padding excluded."""

    @property
    def token_budget(self) -> int:
        """Most tokens of a batch at present."""
        return self._budget

    def run(
        self,
        requests: Sequence[Request],
        gates: NDArray[np.float32],
        gate_index: NDArray[np.intp],
    ) -> list[Output]:
        """Answers every request under its gates.

        Args:
            requests: What is asked.
            gates: Gates of every mask, `(masks, components)`.
            gate_index: For every request its row in `gates`, `(requests,)`.

        Returns:
            The answers, in the order of the requests; the same whatever the batch size.

        Raises:
            BadLogits: The model returned NaN or infinite logits.
        """
        answers: list[Output | None] = [None] * len(requests)
        start = self.tokens
        passes: dict[tuple[int, tuple[int, ...]], _Pass] = {}
        decodings: list[_Decoding] = []
        for position, request in enumerate(requests):
            mask = int(gate_index[position])
            if request.kind == "loglikelihood":
                tokens = (*request.context, *request.continuation)[:-1]
                one = passes.setdefault((mask, tokens), _Pass(mask, tokens))
                one.targets.append((position, request.continuation))
            else:
                decodings.append(_Decoding(mask, position, request))

        all_gates = torch.from_numpy(np.ascontiguousarray(gates, dtype=np.float32))

        done = 0

        def store(results: Sequence[tuple[int, Output]]) -> None:
            nonlocal done
            for position, answer in results:
                answers[position] = answer
            done += len(results)
            if self._on_progress is not None:
                self._on_progress(Progress(done, len(requests), self.tokens - start))

        self._in_batches(
            list(passes.values()),
            lambda one: len(one.tokens),
            lambda batch: store(self._read(batch, all_gates)),
        )
        self._in_batches(
            decodings,
            lambda one: len(one.request.context) + one.request.max_new_tokens,
            lambda batch: store(self._decode(batch, all_gates)),
        )
        assert all(answer is not None for answer in answers)
        return [answer for answer in answers if answer is not None]

    def _in_batches(
        self, work: list[Work], length: Callable[[Work], int], run: Callable[[list[Work]], None]
    ) -> None:
        """Runs all work, longest first; halves the budget and repeats where memory runs out."""
        pending = longest_first(work, length)
        while pending:
            size = next_batch(pending, length, budget=self._budget)
            if self._fits(run, pending[:size]):
                del pending[:size]
            else:
                gc.collect()
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                self._budget = max(1, min(self._budget, size * length(pending[0])) // 2)

    @staticmethod
    def _fits(run: Callable[[list[Work]], None], batch: list[Work]) -> bool:
        """Runs a batch and says whether memory sufficed; a single row that does not fit raises."""
        try:
            run(batch)
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
            return False
        return True

    @torch.inference_mode()
    def _read(self, batch: list[_Pass], gates: Tensor) -> list[tuple[int, Output]]:
        """Scores continuations: one forward pass over left-padded rows."""
        tokens, attention = left_padded([one.tokens for one in batch], device=self._model.device)
        keep = max(len(target) for one in batch for _, target in one.targets)
        with self._model.gates(gates[[one.mask for one in batch]]):
            logits, _ = self._model.forward(tokens, attention, keep=keep)
        self.tokens += sum(len(one.tokens) for one in batch)
        _require_finite(logits)
        rows = [(row, *target) for row, one in enumerate(batch) for target in one.targets]
        # pad every target on the left, so that its last token stands at the last position
        wanted, wanted_mask = left_padded([target for *_, target in rows], device=logits.device)
        row_index = torch.tensor([row for row, *_ in rows], device=logits.device)
        width = wanted.shape[1]
        chosen = logits[row_index, -width:].float()  # (targets, width, vocabulary)
        log_probability = chosen.gather(-1, wanted[..., None])[..., 0] - chosen.logsumexp(-1)
        totals = (log_probability * wanted_mask).sum(-1).tolist()
        greedy = ((chosen.argmax(-1) == wanted) | (wanted_mask == 0)).all(-1).tolist()
        return [
            (position, LogLikelihood(total, is_greedy))
            for (_, position, _), total, is_greedy in zip(rows, totals, greedy, strict=True)
        ]

    @torch.inference_mode()
    def _decode(self, batch: list[_Decoding], gates: Tensor) -> list[tuple[int, Output]]:
        """Decodes greedily; rows that have ended leave the batch."""
        tokens, attention = left_padded(
            [one.request.context for one in batch], device=self._model.device
        )
        generated: list[list[int]] = [[] for _ in batch]
        in_batch = list(range(len(batch)))  # which generation each row of the batch is
        alive = set(in_batch)
        with self._model.gates(gates[[one.mask for one in batch]]) as active:
            logits, cache = self._model.forward(tokens, attention, keep=1, use_cache=True)
            while True:
                _require_finite(logits)
                newest = logits[:, -1].argmax(-1)
                for index, token in zip(in_batch, newest.tolist(), strict=True):
                    if index in alive:
                        generated[index].append(token)
                        request = batch[index].request
                        if self._stop.ended(generated[index], request.stop, request.max_new_tokens):
                            alive.remove(index)
                if not alive:
                    break
                if len(in_batch) - len(alive) >= COMPACTION_SHARE * len(in_batch):
                    rows = [row for row, index in enumerate(in_batch) if index in alive]
                    newest, attention = _select(rows, newest, attention, cache, active)
                    in_batch = [in_batch[row] for row in rows]
                attention = nn.functional.pad(attention, (0, 1), value=1)
                logits, cache = self._model.forward(
                    newest[:, None], attention, keep=1, cache=cache, use_cache=True
                )
        self.tokens += sum(
            len(one.request.context) + len(new) for one, new in zip(batch, generated, strict=True)
        )
        return [
            (one.position, Generation(self._stop.text(new, one.request.stop), len(new)))
            for one, new in zip(batch, generated, strict=True)
        ]


def _select(
    rows: list[int], newest: Tensor, attention: Tensor, cache: object, active: ActiveGates
) -> tuple[Tensor, Tensor]:
    """Cuts a batch in decoding down to some of its rows; the cache and the gates in place."""
    index = torch.tensor(rows, device=attention.device)
    cache.reorder_cache(index)  # type: ignore[attr-defined]  # every kind of cache has it
    active.select(index)
    return newest[index], attention[index]


def _require_finite(logits: Tensor) -> None:
    finite = torch.isfinite(logits).flatten(1).all(1)
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0, 0])
        raise BadLogits(
            f"the model returned NaN or infinite logits in row {row} of a batch of {len(finite)}: "
            "its weights or its number format are at fault; try --dtype float32"
        )


def _eos_tokens(model: GatedModel) -> list[int]:
    """End-of-sequence tokens, as generation with transformers would use them."""
    configured = getattr(model.model.generation_config, "eos_token_id", None)
    if configured is None:
        configured = model.tokenizer.eos_token_id
    if configured is None:
        return []
    return [configured] if isinstance(configured, int) else list(configured)


def default_token_budget(model: GatedModel) -> int:
    """Tokens of a batch that use the device well and its free memory by at most half.

    On a GPU the estimate is coarse (keys and values, activations, logits of one position); the
    engine halves it when it was too bold. On a CPU small batches are faster: they stay in the
    caches.
    """
    if model.device.type != "cuda":
        return CPU_TOKEN_BUDGET
    free, _ = torch.cuda.mem_get_info(model.device)
    config = model.model.config.get_text_config(decoder=True)
    size = 4 if model.dtype == "float32" else 2
    keys_values = sum(2 * one.kv_heads * one.head_dim * size for one in model.structure.projections)
    activations = 16 * config.hidden_size * size + 2 * int(config.vocab_size)
    return max(1024, int(0.5 * free / (keys_values + activations)))


CPU_TOKEN_BUDGET = 4096
