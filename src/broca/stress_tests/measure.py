"""Measures necessity, decodability, reversal and transfer of one set of heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.errors import BadInput, SelfTestFailed
from broca.models import GatedModel
from broca.results.base import Interval
from broca.results.stress_test import Necessity, Probe, Reversal, Shift, StressTest
from broca.runs.provenance import model_info
from broca.stress_tests.families import Family
from broca.stress_tests.keeping import Parts, digest
from broca.stress_tests.patching import Patcher, State
from broca.stress_tests.probing import probe
from broca.stress_tests.prompts import Operand, Pair, operands, pairs
from broca.stress_tests.verdict import judge
from broca.verification.controls import CONTROLS, layer_matched
from broca.verification.statistics import bootstrap_interval

_SUBSPACE = 4
"""Dimensions of the low-rank part that is restored."""

Values = NDArray[np.float64]


def stress(
    model: GatedModel,
    heads: Sequence[str],
    family: Family,
    *,
    controls: Sequence[Family] = (),
    count: int = 48,
    sets: int = CONTROLS,
    seed: int = 0,
    keep: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> StressTest:
    """Stress-tests the claim that heads carry a family's operation.

    Args:
        model: The model, with heads as components.
        heads: Names of the heads.
        family: Prompts with at least two operations on the same operands.
        controls: Families that the heads should not matter for.
        count: Pairs of a source and a target, and operands of each family.
        sets: Random head sets.
        seed: Seed of pairs, random sets and resampling.
        keep: File that keeps finished parts, so that the same test goes on after a kill.
        report: Receives which stage is going on.

    Raises:
        BrocaError: The family does not fit the model, or the patching is not exact; the file cannot
            be written, or holds something else.
    """
    columns = model.components.columns(heads)
    if not columns:
        raise BadInput("no heads are named: give --heads such as L0H4+L1H8")
    patcher = Patcher(model)
    found = operands(family, model.tokenizer, limit=count)
    others = [operands(one, model.tokenizer, limit=count) for one in controls]
    random_sets = layer_matched(model.components, columns, count=sets, seed=seed).tolist()
    parts = Parts(
        digest(model, columns, [family, *controls], count=count, sets=sets, seed=seed), keep
    )
    necessity = []
    for kind in ("zero", "mean", "resample"):
        report(f"necessity under {kind} ablation")
        measure = partial(
            _necessity, patcher, kind, columns, found, others, controls, random_sets, seed
        )
        necessity.append(parts.get(f"necessity, {kind}", Necessity, measure))
    report("decodability")
    probed = parts.get("probe", Probe | None, lambda: _probe(patcher, columns, family, found, seed))
    report("reversal")
    reversals = parts.get(
        "reversals", tuple[Reversal, ...], lambda: _reversals(patcher, columns, found)
    )
    report("transfer")
    chosen = pairs(family, found, count=count, seed=seed)
    transfer = _Transfer(patcher, found, chosen, seed)
    self_patch = transfer.self_patch(columns)
    if self_patch != 0:
        raise SelfTestFailed(
            f"writing a prompt's own outputs into it changes a log-probability by {self_patch:.2g}:"
            " the patching is not exact on this model, no figure would mean anything"
        )
    shifts = parts.get(
        "shifts",
        tuple[Shift, ...],
        lambda: transfer.shifts(columns, random_sets, others[0] if others else None),
    )
    positive = parts.get("positive control", Interval, transfer.positive_control)
    label, text = judge(shifts, positive)
    return StressTest(
        model=model_info(model),
        family=family.name,
        heads=tuple(model.components.names[column] for column in columns),
        seed=seed,
        pairs=len(chosen),
        necessity=tuple(necessity),
        probe=probed,
        reversals=reversals,
        shifts=shifts,
        self_patch=self_patch,
        positive_control=positive,
        verdict=label,
        text=text,
    )


def _interval(values: Values) -> Interval:
    return bootstrap_interval(values, np.zeros_like(values))


def _asked(found: Sequence[Operand]) -> list[tuple[Operand, str]]:
    return [(one, operation) for operation in found[0].answers for one in found]


def _margins(log_probs: Tensor, found: Sequence[Operand]) -> Values:
    """Log p of the right first token minus that of the best foil, prompt by prompt.

    Foils are the first tokens of all other answers of the family.
    """
    every = sorted({token for one in found for token in one.answers.values()})
    if len(every) < 2:
        raise BadInput("all answers of a family begin with the same token: there is no foil")
    margins = []
    for row, (one, operation) in zip(log_probs, _asked(found), strict=True):
        right = one.answers[operation]
        foils = [token for token in every if token != right]
        margins.append(float(row[right] - row[foils].max()))
    return np.array(margins)


def _necessity(
    patcher: Patcher,
    kind: str,
    columns: Sequence[int],
    found: Sequence[Operand],
    others: Sequence[Sequence[Operand]],
    controls: Sequence[Family],
    random_sets: Sequence[Sequence[int]],
    seed: int,
) -> Necessity:
    families = [found, *others]
    prompts = [[one.prompts[operation] for one, operation in _asked(each)] for each in families]
    clean = [_margins(patcher.log_probs(p), f) for p, f in zip(prompts, families, strict=True)]
    states = [_instead(patcher, kind, each, seed) for each in prompts]

    def drops(chosen: Sequence[int]) -> list[Values]:
        return [
            intact - _margins(patcher.log_probs(p, chosen, state), f)
            for intact, p, state, f in zip(clean, prompts, states, families, strict=True)
        ]

    def selective(values: list[Values]) -> float:
        return float(values[0].mean() - max((v.mean() for v in values[1:]), default=0.0))

    own = drops(columns)
    null = [selective(drops(one)) for one in random_sets]
    value = selective(own)
    return Necessity(
        ablation=kind,
        drop=_interval(own[0]),
        controls={
            family.name: float(each.mean()) for family, each in zip(controls, own[1:], strict=True)
        },
        selective=value,
        null=tuple(null),
        rank=1 + sum(one >= value for one in null),
    )


def _instead(
    patcher: Patcher, kind: str, prompts: Sequence[Sequence[int]], seed: int
) -> State | None:
    """What stands in for ablated outputs."""
    if kind == "zero":
        return None
    state = patcher.state(prompts)
    if kind == "mean":
        return {
            point: one.mean((0, 1), keepdim=True).expand_as(one) for point, one in state.items()
        }
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(prompts)))
    return {point: one[order.to(one.device)] for point, one in state.items()}


def _probe(
    patcher: Patcher, columns: Sequence[int], family: Family, found: Sequence[Operand], seed: int
) -> Probe | None:
    if len(family.operations) < 2:
        return None
    asked = _asked(found)
    prompts = [one.prompts[operation] for one, operation in asked]
    outputs = patcher.heads_of(patcher.state(prompts), columns)[:, -1].flatten(1).cpu().numpy()
    names = list(family.operations)
    neutral = [one.prompts[None] for one, _ in asked]
    return probe(
        outputs.astype(np.float64),
        np.array(neutral),
        np.array([names.index(operation) for _, operation in asked]),
        np.array([number % len(found) for number in range(len(asked))]),
        np.array([one.template for one, _ in asked]),
        seed=seed,
    )


def _reversals(
    patcher: Patcher, columns: Sequence[int], found: Sequence[Operand]
) -> tuple[Reversal, ...]:
    """Restores strict subsets of what zero ablation took: heads, the last token, few dimensions."""
    prompts = [one.prompts[operation] for one, operation in _asked(found)]
    state = patcher.state(prompts)
    clean = _margins(patcher.log_probs(prompts), found)
    ablated = _margins(patcher.log_probs(prompts, columns), found)
    outputs = patcher.heads_of(state, columns)  # (prompts, tokens, heads, width)
    parts: dict[str, Tensor] = {}
    if len(columns) > 1:
        for number, column in enumerate(columns):
            only = torch.zeros_like(outputs)
            only[:, :, number] = outputs[:, :, number]
            parts[f"{patcher.model.components.names[column]} alone"] = only
    last = torch.zeros_like(outputs)
    last[:, -1] = outputs[:, -1]
    parts["the last token"] = last
    parts["all but the last token"] = outputs - last
    flat = outputs.flatten(2)
    if flat.shape[-1] > _SUBSPACE:
        _, _, directions = torch.linalg.svd(flat.flatten(0, 1), full_matrices=False)
        basis = directions[:_SUBSPACE]
        parts[f"{_SUBSPACE} of {flat.shape[-1]} dimensions"] = (flat @ basis.T @ basis).reshape(
            outputs.shape
        )
    lost = float((clean - ablated).mean())
    found_shares = []
    for name, part in parts.items():
        written = patcher.with_heads(state, columns, part)
        back = _margins(patcher.log_probs(prompts, columns, written), found) - ablated
        scale = lost if abs(lost) > 1e-9 else float("nan")
        if np.isnan(scale):
            continue
        found_shares.append(Reversal(name, _interval(back / scale)))
    return tuple(found_shares)


@dataclass(frozen=True)
class _Transfer:
    """Writes sources into targets."""

    patcher: Patcher
    found: Sequence[Operand]
    pairs: Sequence[Pair]
    seed: int

    def _targets(self) -> list[tuple[int, ...]]:
        return [self.found[one.target].prompts[one.own] for one in self.pairs]

    def _change(self, columns: Sequence[int], written: State) -> Tensor:
        targets = self._targets()
        return self.patcher.log_probs(targets, columns, written) - self.patcher.log_probs(targets)

    def self_patch(self, columns: Sequence[int]) -> float:
        """Largest change when a target's own outputs are written into it."""
        change = self._change(columns, self.patcher.state(self._targets()))
        return float(change.abs().nan_to_num().max())

    def _read(self, change: Tensor) -> tuple[Values, Values]:
        """Transfer and copying, pair by pair."""
        transfer, copying = [], []
        for row, one in zip(change, self.pairs, strict=True):
            v, u = self.found[one.target], self.found[one.source]
            transfer.append(float(row[v.answers[one.asked]] - row[v.answers[one.own]]))
            copying.append(float(row[u.answers[one.asked]]))
        return np.array(transfer), np.array(copying)

    def shifts(
        self,
        columns: Sequence[int],
        random_sets: Sequence[Sequence[int]],
        unrelated: Sequence[Operand] | None,
    ) -> tuple[Shift, ...]:
        """The real write, then the controls on the same targets."""
        patcher, found = self.patcher, self.found
        own = patcher.state(self._targets())
        source = patcher.state([found[one.source].prompts[one.asked] for one in self.pairs])
        real, copied = self._read(self._change(columns, source))
        shifts = [Shift("the other operation", _interval(real), _interval(copied), None)]

        def add(name: str, written: State, chosen: Sequence[int] = columns) -> None:
            moved, _ = self._read(self._change(chosen, written))
            shifts.append(Shift(name, _interval(moved), None, _interval(real - moved)))

        add(
            "the same operation, other operands",
            patcher.state([found[one.source].prompts[one.own] for one in self.pairs]),
        )
        add(
            "the operation word neutralised",
            patcher.state([found[one.source].prompts[None] for one in self.pairs]),
        )
        same = self._same_answer()
        if same is not None:
            add("the same answer from the other operation", patcher.state(same))
        if unrelated is not None:
            first = next(iter(unrelated[0].answers))
            prompts = [
                unrelated[number % len(unrelated)].prompts[first]
                for number in range(len(self.pairs))
            ]
            add("an unrelated family", _aligned(own, patcher.state(prompts)))
        outputs = patcher.heads_of(own, columns)
        other = patcher.heads_of(source, columns)
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn(outputs.shape, generator=generator).to(outputs)
        reach = (other - outputs).norm(dim=-1, keepdim=True)
        scaled = outputs + noise / noise.norm(dim=-1, keepdim=True) * reach
        add("noise of the same norm", patcher.with_heads(own, columns, scaled))
        if random_sets:
            moved = np.mean(
                [self._read(self._change(one, source))[0] for one in random_sets], axis=0
            )
            shifts.append(Shift("random heads", _interval(moved), None, _interval(real - moved)))
        return tuple(shifts)

    def _same_answer(self) -> list[tuple[int, ...]] | None:
        """Prompts of A whose answer begins as the target's own does."""
        prompts = []
        for one in self.pairs:
            wanted = self.found[one.target].answers[one.own]
            fitting = [
                each.prompts[one.asked] for each in self.found if each.answers[one.asked] == wanted
            ]
            if not fitting:
                return None
            prompts.append(fitting[0])
        return prompts

    def positive_control(self) -> Interval:
        """A write that must work: all heads, the operation's mean offset, into neutral prompts.

        The offset is the mean over operands of what the operation's prompts have and the neutral
        ones do not; the change of log p(A(v)) - log p(B(v)) is compared with that of an offset of
        the same norm in random directions.
        """
        patcher, found = self.patcher, self.found
        every = range(len(patcher.model.components))
        neutral = [found[one.target].prompts[None] for one in self.pairs]
        base = patcher.state(neutral)
        plain = patcher.log_probs(neutral)
        generator = torch.Generator().manual_seed(self.seed)
        offsets = {}
        none = patcher.state([one.prompts[None] for one in found])
        for operation in found[0].answers:
            state = patcher.state([one.prompts[operation] for one in found])
            offsets[operation] = {p: (state[p] - none[p]).mean(0) for p in state}
        moved = []
        for random in (False, True):
            written = {}
            for point, one in base.items():
                rows = torch.stack([offsets[pair.asked][point] for pair in self.pairs])
                if random:
                    noise = torch.randn(rows.shape, generator=generator).to(rows)
                    rows = noise * rows.norm() / noise.norm()
                written[point] = one + rows
            change = patcher.log_probs(neutral, list(every), written) - plain
            moved.append(self._read(change)[0])
        return _interval(moved[0] - moved[1])


def _aligned(own: State, other: State) -> State:
    """A state of another length, aligned at the last token; earlier tokens keep their own."""
    written = {}
    for point, one in own.items():
        tokens = min(one.shape[1], other[point].shape[1])
        mixed = one.clone()
        mixed[:, -tokens:] = other[point][:, -tokens:]
        written[point] = mixed
    return written
