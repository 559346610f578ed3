"""Public ground truth: tiny models, a tokenizer, and planted problems with known answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan

_BLOCK = 512
"""Number of masks that are computed at once: thousands of components make large matrices."""
_LEAST_SLOPE = 0.004
"""Size of a slope below which its noise does not shrink further."""


def tiny_tokenizer() -> Any:
    """A byte-level tokenizer of 258 tokens: 256 bytes, `<bos>` and `<eos>` (which also pads)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<bos>": 0, "<eos>": 1}
    vocabulary |= {symbol: number for number, symbol in enumerate(alphabet, start=2)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<eos>"
    )


def tiny_llama(
    *, layers: int = 2, heads: int = 4, kv_heads: int = 2, context: int = 256, seed: int = 0
) -> Any:
    """A Llama model of random weights for `tiny_tokenizer`, large enough to prefer some tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=8,
        max_position_embeddings=context,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


@dataclass(frozen=True)
class PlantedProblem:
    """A simulated model whose true effects are known.

    Attributes:
        effects: True effect of ablating each component alone, `(components,)`.
        planted: Columns of the components that matter, worst first.
        baseline: Response of the intact model.
        noise: Standard deviation of the response of one row.
        seed: Seed of the noise.
        pairs: Columns of components that interact, `(pairs, 2)`.
        pair_effects: Effect of ablating both components minus the sum of their effects, `(pairs,)`.
        backups: Columns of each component's backups, whose common function is lost only when all of
            them are ablated; -1 for none, `(components,)` or `(components, backups)`.
        saturates: Whether a response approaches 0 smoothly instead of being clipped at 0.
        binary: Whether a row is right or wrong, with the response as its probability.
        gradient_noise: Standard deviation of a row's slope relative to the slope itself, or to
            `_LEAST_SLOPE` if the slope is smaller.
    """

    effects: NDArray[np.float64]
    planted: tuple[int, ...]
    baseline: float
    noise: float
    seed: int
    pairs: NDArray[np.intp] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))
    pair_effects: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    backups: NDArray[np.intp] | None = None
    saturates: bool = False
    binary: bool = False
    gradient_noise: float = 0.0

    def means(self, masks: NDArray[np.bool_], scale: float = 0.0) -> NDArray[np.float64]:
        """Expected response under every mask, `(masks,)`.

        Args:
            masks: True where a component is ablated, `(masks, components)`.
            scale: Gate of ablated components; the loss is linear in each gate.
        """
        total = self._total(self._lost(_closed(masks, scale)))
        if self.saturates:
            # the same slope at the baseline, and never below 0
            return np.where(
                total < self.baseline,
                self.baseline * np.exp((total - self.baseline) / self.baseline),
                total,
            )
        return np.maximum(total, 0.0)

    def gradients(self, masks: NDArray[np.bool_], scale: float = 0.0) -> NDArray[np.float64]:
        """Exact gradient of the expected response with respect to the gates, `(masks, components)`.

        Args:
            masks: True where a component is ablated, `(masks, components)`.
            scale: Gate of ablated components.
        """
        closed = _closed(masks, scale)
        lost = self._lost(closed)
        by_lost = np.tile(self.effects, (len(masks), 1))
        for (first, second), effect in zip(self.pairs, self.pair_effects, strict=True):
            by_lost[:, first] += effect * lost[:, second]
            by_lost[:, second] += effect * lost[:, first]
        by_closed = by_lost.copy()
        if self.backups is not None:
            for column in np.flatnonzero((self._spares >= 0).any(axis=1)).tolist():
                spares = [int(spare) for spare in self._spares[column] if spare >= 0]
                by_closed[:, column] -= by_lost[:, column] * (1 - closed[:, spares].prod(axis=1))
                for spare in spares:
                    group = closed[:, [column, *(other for other in spares if other != spare)]]
                    by_closed[:, spare] += by_lost[:, column] * group.prod(axis=1)
        total = self._total(lost)
        outer = np.where(total > 0, 1.0, 0.0)
        if self.saturates:
            outer = np.exp(np.minimum(total - self.baseline, 0) / self.baseline)
        slopes: NDArray[np.float64] = -by_closed * outer[:, None]
        return slopes

    @property
    def _spares(self) -> NDArray[np.intp]:
        """Returns the backups of every component, `(components, backups)`."""
        if self.backups is None:
            return np.zeros((len(self.effects), 0), dtype=np.intp)
        return self.backups.reshape(len(self.effects), -1)

    def _lost(self, closed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the lost share of each component; 0 for a component with an intact backup."""
        lost = closed.copy()
        for spares in self._spares.T:
            backed = np.flatnonzero(spares >= 0)
            lost[:, backed] *= closed[:, spares[backed]]
        return lost

    def _total(self, lost: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the response before saturation and clipping, `(masks,)`."""
        total: NDArray[np.float64] = self.baseline + lost @ self.effects
        if len(self.pairs):
            total += lost[:, self.pairs[:, 0]] * lost[:, self.pairs[:, 1]] @ self.pair_effects
        return total

    def run(self, plan: Plan) -> Measurement:
        """Measures a plan like an executor: the expected response with noise for each row."""
        scale = plan.scale or 0.0
        blocks = [plan.masks[at : at + _BLOCK] for at in range(0, len(plan.masks), _BLOCK)]
        mean = np.concatenate([self.means(block, scale) for block in blocks])[plan.mask_index]
        gradients = None
        if plan.gradients:
            by_mask = [self.gradients(block, scale).astype(np.float32) for block in blocks]
            gradients = self._with_noise(np.concatenate(by_mask)[plan.mask_index], plan)
        elif self.binary and plan.response in (None, "accuracy"):
            # the difficulty of an item is the same under every mask
            hard = {
                item: np.random.default_rng([self.seed, item]).random()
                for item in set(plan.item_index.tolist())
            }
            right = [
                hard[item] < expected
                for item, expected in zip(plan.item_index.tolist(), mean, strict=True)
            ]
            return Measurement(plan, np.array(right, dtype=float))
        # the noise of a row depends only on its mask and item: a repeated row has the same response
        noise = np.array([rng.normal() for rng in self._by_row(plan)])
        return Measurement(plan, mean + self.noise * noise, gradients)

    def _with_noise(self, slopes: NDArray[np.float32], plan: Plan) -> NDArray[np.float32]:
        """Adds the noise of items to slopes, which vary between items much more than responses."""
        if not self.gradient_noise:
            return slopes
        spread = self.gradient_noise * np.maximum(np.abs(slopes), _LEAST_SLOPE)
        noise = np.stack([rng.normal(size=slopes.shape[1]) for rng in self._by_row(plan, 1)])
        noisy: NDArray[np.float32] = (slopes + spread * noise).astype(np.float32)
        return noisy

    def _by_row(self, plan: Plan, *use: int) -> Iterator[np.random.Generator]:
        """Yields a generator for each row, seeded by its mask, its item and the purpose."""
        weights = np.arange(1, plan.masks.shape[1] + 1)
        blocks = [plan.masks[at : at + _BLOCK] for at in range(0, len(plan.masks), _BLOCK)]
        keys = np.concatenate([block @ weights for block in blocks])
        for mask, item in zip(plan.mask_index, plan.item_index, strict=True):
            yield np.random.default_rng([self.seed, int(keys[mask]), int(item), *use])


def _closed(masks: NDArray[np.bool_], scale: float) -> NDArray[np.float64]:
    """Returns how far every gate is closed, `(masks, components)`."""
    return np.where(masks, 1 - scale, 0.0).astype(np.float64)


def planted_problem(
    *,
    components: int = 96,
    planted: int = 5,
    effect: float = 0.3,
    noise: float = 0.1,
    baseline: float = 1.0,
    seed: int = 0,
    moderate: int = 0,
    pairs: int = 0,
    redundant: int = 0,
    redundancy: int = 1,
    saturates: bool = False,
    binary: bool = False,
    gradient_noise: float = 0.0,
) -> PlantedProblem:
    """Makes a problem in which `planted` components matter and the others nearly do not.

    The planted effects fall from `effect` to half of it; the others are Gaussian with a standard
    deviation of a hundredth of it.

    Args:
        components: Number of components.
        planted: Number of components that matter.
        effect: The largest effect.
        noise: Standard deviation of one row's response.
        baseline: Response of the intact model.
        seed: Seed of all random draws.
        moderate: Number of components with moderate effects, a heavy tail (exponential, a tenth of
            `effect` on average, at most a third of it).
        pairs: Interactions between random planted or moderate components, Gaussian with a fifth of
            `effect`.
        redundant: Number of planted components that have backups; ablating any one of a group alone
            has little effect.
        redundancy: Number of backups of each of these components.
        saturates: Whether responses approach 0 smoothly.
        binary: Whether rows are right or wrong.
        gradient_noise: Standard deviation of a row's slopes relative to the slopes themselves.
    """
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, effect / 100, components)
    columns = rng.choice(components, planted, replace=False)
    effects[columns] = -np.linspace(effect, effect / 2, planted)
    unplanted = np.setdiff1d(np.arange(components), columns)
    tail = rng.choice(unplanted, moderate, replace=False) if moderate else np.zeros(0, np.intp)
    effects[tail] = -np.minimum(rng.exponential(effect / 10, moderate), effect / 3)
    backups = None
    if redundant:
        backups = np.full((components, redundancy), -1, dtype=np.intp)
        spare = rng.choice(np.setdiff1d(unplanted, tail), redundant * redundancy, replace=False)
        backups[columns[:redundant]] = spare.reshape(redundant, redundancy)
    matter = np.concatenate([columns, tail])
    chosen = np.array([rng.choice(matter, 2, replace=False) for _ in range(pairs)], dtype=np.intp)
    return PlantedProblem(
        effects,
        tuple(int(column) for column in columns),
        baseline,
        noise,
        seed,
        pairs=chosen.reshape(-1, 2),
        pair_effects=rng.normal(0, effect / 5, pairs),
        backups=backups,
        saturates=saturates,
        binary=binary,
        gradient_noise=gradient_noise,
    )
