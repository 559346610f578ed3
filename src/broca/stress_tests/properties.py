"""Necessity, decodability, reversal and transfer of a set of heads, from observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from broca.errors import SelfTestFailed
from broca.measurement import Observation
from broca.results.base import Interval
from broca.results.stress_test import Necessity, Probe, Reversal, Shift
from broca.stress_tests.observing import AnswerLogProbs, HeadOutputs, SelfPatch, Vector
from broca.stress_tests.probing import probe
from broca.stress_tests.prompts import Prompt, PromptPair
from broca.stress_tests.stand_ins import (
    Noise,
    OperationOffset,
    OutputsOf,
    RestoredPart,
    StandIn,
    Zeros,
    ablated,
)
from broca.stress_tests.subject import HeadColumns, StressSubject
from broca.verification.statistics import Values, bootstrap_interval

SUBSPACE = 4
"""Number of dimensions of the restored low-rank part."""

Observe = Callable[[Sequence[Observation]], list[Vector]]
"""Measures observations of one class; returns their vectors, in their order."""


def necessity(observe: Observe, subject: StressSubject, kind: str) -> Necessity:
    """Measures the drop of the margin without the heads, on the family and on the controls.

    Args:
        observe: Measures observations.
        subject: The subject of the test.
        kind: Kind of ablation, a key of `ABLATIONS`.
    """
    families = (subject.family, *subject.controls)
    sets = (subject.columns, *subject.random_sets)
    stand_in = ablated(kind, subject.seed)
    observations = []
    for family in families:
        prompts, answers = family.prompts, family.answers
        observations.append(AnswerLogProbs(prompts, (), answers))
        observations += [AnswerLogProbs(prompts, columns, answers, stand_in) for columns in sets]
    margins = iter([_margins(log_probs) for log_probs in _log_probs(observe, observations)])
    drops: list[list[Values]] = [[] for _ in sets]  # set by set, family by family
    for _ in families:
        intact = next(margins)
        for set_drops in drops:
            set_drops.append(intact - next(margins))
    selective, *null = [_selective(set_drops) for set_drops in drops]
    family_drop, *control_drops = drops[0]
    return Necessity(
        ablation=kind,
        drop=_interval(family_drop),
        controls={
            control.name: float(drop.mean())
            for control, drop in zip(subject.controls, control_drops, strict=True)
        },
        selective=selective,
        null=tuple(null),
        rank=1 + sum(value >= selective for value in null),
    )


def decodability(observe: Observe, subject: StressSubject) -> Probe:
    """Tests whether a linear probe reads the operation from the heads' outputs."""
    family, questions = subject.family, subject.family.questions
    (outputs,) = observe([HeadOutputs(family.prompts, subject.columns)])
    return probe(
        outputs.reshape(len(questions), -1).astype(np.float64),
        np.array([operand.prompts[None] for operand, _ in questions]),
        np.array([family.operations.index(operation) for _, operation in questions]),
        np.arange(len(questions)) % len(family.operands),
        np.array([operand.template for operand, _ in questions]),
        seed=subject.seed,
    )


def reversal(observe: Observe, subject: StressSubject) -> tuple[Reversal, ...]:
    """Measures how much of zero ablation's damage restoring strict parts of the outputs undoes."""
    parts = _restored_parts(subject)
    prompts, answers = subject.family.prompts, subject.family.answers
    observations = [AnswerLogProbs(prompts, (), answers)]
    observations += [
        AnswerLogProbs(prompts, subject.columns, answers, stand_in)
        for stand_in in (Zeros(), *parts.values())
    ]
    intact, ablated, *restored = map(_margins, _log_probs(observe, observations))
    damage = float((intact - ablated).mean())
    if not abs(damage) > 1e-9:
        return ()
    return tuple(
        Reversal(name, _interval((margins - ablated) / damage))
        for name, margins in zip(parts, restored, strict=True)
    )


def self_patch(observe: Observe, subject: StressSubject) -> float:
    """Returns the largest change when a target's own outputs are written into it; must be zero.

    Raises:
        SelfTestFailed: The change is not zero.
    """
    (changes,) = observe([SelfPatch(_targets(subject), subject.columns)])
    largest = float(changes.max())
    if largest != 0:
        raise SelfTestFailed(
            f"writing a prompt's own outputs into it changes a log-probability by {largest:.2g}:"
            " the patching is not exact on this model, no figure would mean anything"
        )
    return largest


def transfer(observe: Observe, subject: StressSubject) -> tuple[Shift, ...]:
    """Measures the effect of writing sources into targets: the real write, then the controls."""
    writes = _writes(subject)
    changes = _changes(
        observe, subject, _targets(subject), [(columns, written) for _, columns, written in writes]
    )
    moved: dict[str, list[Values]] = {}
    for (name, _, _), change in zip(writes, changes, strict=True):
        moved.setdefault(name, []).append(_shift(change))
    (real_name, (real,)), *controls = moved.items()
    copied = changes[0][:, 2].astype(np.float64)
    return (
        Shift(real_name, _interval(real), _interval(copied), None),
        *(
            Shift(name, _interval(values), None, _interval(real - values))
            for name, values in ((name, np.mean(of_sets, axis=0)) for name, of_sets in controls)
        ),
    )


def positive_control(observe: Observe, subject: StressSubject) -> Interval:
    """Writes the operation's mean offset into all heads of neutral prompts, which must work.

    The offset is the mean difference over operands between the outputs on the operation's prompts
    and on the neutral prompts; the change of log p(A(v)) - log p(B(v)) is compared with that of an
    offset of the same norm in random directions.
    """
    operands, operations = subject.family.operands, subject.family.operations
    offset = OperationOffset(
        operation_prompts=tuple(
            tuple(operand.prompts[operation] for operand in operands) for operation in operations
        ),
        neutral_prompts=tuple(operand.prompts[None] for operand in operands),
        operations=tuple(operations.index(pair.source_operation) for pair in subject.pairs),
    )
    prompts = tuple(operands[pair.target].prompts[None] for pair in subject.pairs)
    writes = [(subject.all_heads, offset), (subject.all_heads, replace(offset, seed=subject.seed))]
    moved, moved_at_random = map(_shift, _changes(observe, subject, prompts, writes))
    return _interval(moved - moved_at_random)


def _restored_parts(subject: StressSubject) -> dict[str, StandIn]:
    """Returns the strict parts of the outputs that are restored, by name."""
    parts: dict[str, StandIn] = {}
    if len(subject.columns) > 1:
        parts |= {
            f"{name} alone": RestoredPart(head=place) for place, name in enumerate(subject.names)
        }
    parts["the last token"] = RestoredPart("last")
    parts["all but the last token"] = RestoredPart("all but last")
    width = len(subject.columns) * subject.head_dim
    if width > SUBSPACE:
        parts[f"{SUBSPACE} of {width} dimensions"] = RestoredPart(dimensions=SUBSPACE)
    return parts


def _writes(subject: StressSubject) -> list[tuple[str, HeadColumns, StandIn]]:
    """Returns the writes into the targets: name, outputs, and heads."""
    sources = _sources(subject, lambda pair: pair.source_operation)
    stand_ins: dict[str, StandIn] = {
        "the other operation": OutputsOf(sources),
        **_controls(subject),
        "noise of the same norm": Noise(sources, subject.seed),
    }
    return [
        *((name, subject.columns, stand_in) for name, stand_in in stand_ins.items()),
        *(("random heads", columns, OutputsOf(sources)) for columns in subject.random_sets),
    ]


def _controls(subject: StressSubject) -> dict[str, StandIn]:
    """Returns the control writes by name, which carry no other operation or no other answer."""
    controls: dict[str, StandIn] = {
        "the same operation, other operands": OutputsOf(
            _sources(subject, lambda pair: pair.target_operation)
        ),
        "the operation word neutralised": OutputsOf(_sources(subject, lambda pair: None)),
    }
    same_answer = _same_answer(subject)
    if same_answer is not None:
        controls["the same answer from the other operation"] = OutputsOf(same_answer)
    if subject.controls:
        unrelated = subject.controls[0]
        prompts = unrelated.prompts[: len(unrelated.operands)]  # prompts of its first operation
        controls["an unrelated family"] = OutputsOf(
            tuple(prompts[number % len(prompts)] for number in range(len(subject.pairs)))
        )
    return controls


def _targets(subject: StressSubject) -> tuple[Prompt, ...]:
    operands = subject.family.operands
    return tuple(operands[pair.target].prompts[pair.target_operation] for pair in subject.pairs)


def _sources(
    subject: StressSubject, operation: Callable[[PromptPair], str | None]
) -> tuple[Prompt, ...]:
    operands = subject.family.operands
    return tuple(operands[pair.source].prompts[operation(pair)] for pair in subject.pairs)


def _same_answer(subject: StressSubject) -> tuple[Prompt, ...] | None:
    """Returns prompts of A whose answer begins like the target's; None if a pair has none."""
    operands, prompts = subject.family.operands, []
    for pair in subject.pairs:
        answer = operands[pair.target].answers[pair.target_operation]
        fitting = [
            operand.prompts[pair.source_operation]
            for operand in operands
            if operand.answers[pair.source_operation] == answer
        ]
        if not fitting:
            return None
        prompts.append(fitting[0])
    return tuple(prompts)


def _changes(
    observe: Observe,
    subject: StressSubject,
    prompts: tuple[Prompt, ...],
    writes: Sequence[tuple[HeadColumns, StandIn]],
) -> list[Vector]:
    """Measures how each write changes log p(A(v)), log p(B(v)), log p(A(u)): `(pairs, 3)`."""
    tokens = []
    for pair in subject.pairs:
        u, v = subject.family.operands[pair.source], subject.family.operands[pair.target]
        a, b = pair.source_operation, pair.target_operation
        tokens.append((v.answers[a], v.answers[b], u.answers[a]))
    observations = [AnswerLogProbs(prompts, (), tuple(tokens))]
    observations += [
        AnswerLogProbs(prompts, columns, tuple(tokens), stand_in) for columns, stand_in in writes
    ]
    intact, *written = _log_probs(observe, observations)
    return [log_probs - intact for log_probs in written]


def _shift(changes: Vector) -> Values:
    """Returns the change of log p(A(v)) - log p(B(v)), pair by pair."""
    return (changes[:, 0] - changes[:, 1]).astype(np.float64)


def _log_probs(observe: Observe, observations: Sequence[AnswerLogProbs]) -> list[Vector]:
    """Measures the log-probabilities of every observation, `(prompts, tokens)`."""
    return [
        vector.reshape(len(observation.prompts), -1)
        for observation, vector in zip(observations, observe(observations), strict=True)
    ]


def _margins(log_probs: Vector) -> Values:
    """Returns log p of the right first token minus that of the best foil, prompt by prompt."""
    best_foil: Vector = log_probs[:, 1:].max(axis=1)
    return (log_probs[:, 0] - best_foil).astype(np.float64)


def _selective(drops: Sequence[Values]) -> float:
    """Returns the family's mean drop minus the largest drop of the controls."""
    return float(drops[0].mean() - max((drop.mean() for drop in drops[1:]), default=0.0))


def _interval(values: Values) -> Interval:
    return bootstrap_interval(values, np.zeros_like(values))
