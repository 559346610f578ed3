"""Necessity, decodability, reversal and transfer of a set of heads, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from broca.errors import SelfTestFailed
from broca.measurement import Observation
from broca.results.base import Interval
from broca.results.stress_test import Necessity, Probe, Reversal, Shift, StressLabel
from broca.stress_tests.patcher import (
    Ablated,
    AnswerLogProbs,
    HeadOutputs,
    Noise,
    OperationOffset,
    OutputsOf,
    Prompt,
    RestoredPart,
    SelfPatch,
    Write,
)
from broca.stress_tests.subject import HeadColumns, PromptPair, StressSubject
from broca.verification.statistics import Values, bootstrap_interval

SUBSPACE = 4
"""Number of dimensions of the restored low-rank part."""

_FOLDS = 4
"""Number of folds of operands of a probe."""

_BROAD = ("the operation word neutralised", "an unrelated family", "noise of the same norm")
"""Controls that carry no operation; their effect is that of any disturbance."""

Vector = NDArray[np.float32]

Observe = Callable[[Sequence[Observation]], list[Vector]]
"""Measures observations of one class; returns their vectors, in their order."""

Tokens = tuple[tuple[int, ...], ...]
"""Answer tokens of every prompt."""


def necessity(observe: Observe, subject: StressSubject, kind: str) -> Necessity:
    """Measures the drop of the margin without the heads, on the family and on the controls.

    Args:
        observe: Measures observations.
        subject: The subject of the test.
        kind: Kind of ablation, a key of `ABLATIONS`.
    """
    ablated = Ablated(kind, subject.seed)
    sets = [(columns, ablated) for columns in (subject.columns, *subject.random_sets)]
    drops: list[list[Values]] = []  # family by family, set by set
    for family in (subject.family, *subject.controls):
        intact, *margins = _margins(observe, family.prompts, family.answers, sets)
        drops.append([intact - of_set for of_set in margins])
    selective, *null = [
        float(drop.mean() - max((other.mean() for other in others), default=0.0))
        for drop, *others in zip(*drops, strict=True)
    ]
    family_drop, *control_drops = (of_family[0] for of_family in drops)
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
    """Tests whether a linear probe reads the operation from the heads' outputs.

    A logistic regression is trained on some operands and tested on others.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    family, questions = subject.family, subject.family.questions
    (vector,) = observe([HeadOutputs(family.prompts, subject.columns)])
    outputs = vector.reshape(len(questions), -1).astype(np.float64)
    labels = np.array([family.operations.index(operation) for _, operation in questions])
    templates = np.array([operand.template for operand, _ in questions])
    operand_tokens = np.array([operand.prompts[None] for operand, _ in questions])
    surface = OneHotEncoder(handle_unknown="ignore").fit_transform(operand_tokens)
    shuffled = np.random.default_rng(subject.seed).permutation(labels)

    def accuracy(features: object, goal: NDArray[np.int_], **split: object) -> float:
        regression = LogisticRegression(C=0.1, max_iter=500)
        model = make_pipeline(StandardScaler(with_mean=False), regression)
        return float(cross_val_score(model, features, goal, **split).mean())

    operands = np.arange(len(questions)) % len(family.operands)
    by_operand = {"groups": operands, "cv": GroupKFold(n_splits=_FOLDS)}
    by_template = {"groups": templates, "cv": LeaveOneGroupOut()}
    several = len(set(templates.tolist())) > 1
    return Probe(
        accuracy=accuracy(outputs, labels, **by_operand),
        templates=accuracy(outputs, labels, **by_template) if several else None,
        shuffled=accuracy(outputs, shuffled, **by_operand),
        surface=accuracy(surface, labels, **by_operand),
        chance=float(np.bincount(labels).max() / len(labels)),
        items=len(labels),
    )


def reversal(observe: Observe, subject: StressSubject) -> tuple[Reversal, ...]:
    """Measures how much of zero ablation's damage restoring strict parts of the outputs undoes."""
    parts: dict[str, Write] = {}
    if len(subject.columns) > 1:
        parts |= {f"{name} alone": RestoredPart(head=n) for n, name in enumerate(subject.names)}
    parts["the last token"] = RestoredPart("last")
    parts["all but the last token"] = RestoredPart("all but last")
    width = len(subject.columns) * subject.head_dim
    if width > SUBSPACE:
        parts[f"{SUBSPACE} of {width} dimensions"] = RestoredPart(dimensions=SUBSPACE)
    writes = [(subject.columns, write) for write in (Ablated(), *parts.values())]
    family = subject.family
    intact, ablated, *restored = _margins(observe, family.prompts, family.answers, writes)
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
    in_order = [write for of_name in writes.values() for write in of_name]
    changes = iter(_changes(observe, subject, _targets(subject), in_order))
    (name, real_changes), *controls = [
        (name, [next(changes) for _ in of_name]) for name, of_name in writes.items() if of_name
    ]
    real, copied = _shift(real_changes[0]), real_changes[0][:, 2].astype(np.float64)
    shifts = [Shift(name, _interval(real), _interval(copied), None)]
    for name, of_sets in controls:
        moved = np.mean([_shift(change) for change in of_sets], axis=0)
        shifts.append(Shift(name, _interval(moved), None, _interval(real - moved)))
    return tuple(shifts)


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


def judge(shifts: Sequence[Shift], positive: Interval) -> tuple[StressLabel, str]:
    """Applies the rule, first match first.

    Args:
        shifts: The real write, then the controls.
        positive: The shift of the write that must have an effect.
    """
    real, controls = shifts[0], shifts[1:]
    moved = f"the write moves the target by {_nats(real.transfer)}"
    if positive.low <= 0:
        return "inconclusive", (
            f"the positive control moves {_nats(positive)}: the test cannot show that it "
            f"would find transfer here, so it means nothing that {moved}."
        )
    if real.transfer.low <= 0:
        if real.copying is not None and real.copying.low > 0:
            return "answer-bias", (
                f"{moved}, but it raises the source's own answer by {_nats(real.copying)}."
            )
        return "inert", f"{moved}: no transfer, where the positive control moves {_nats(positive)}."
    if real.copying is not None and real.copying.low > real.transfer.high:
        return "answer-bias", (
            f"{moved}, and the source's own answer by more, {_nats(real.copying)}."
        )
    equal = [
        control.source
        for control in controls
        if control.beyond is not None and control.beyond.low <= 0
    ]
    broad = [source for source in equal if source in _BROAD]
    if broad:
        return "broad-state", f"{moved}, but {broad[0]} does as much."
    if equal:
        return "soft", f"{moved}, but not significantly more than {equal[0]}."
    return "transfers", f"{moved}, more than each of {len(controls)} controls."


def _nats(interval: Interval) -> str:
    return f"{interval.value:+.2f} nats [{interval.low:+.2f}, {interval.high:+.2f}]"


def _writes(subject: StressSubject) -> dict[str, list[tuple[HeadColumns, Write]]]:
    """Returns the writes into the targets, heads and outputs, by name; the real write first."""

    def sources(operation: Callable[[PromptPair], str | None]) -> OutputsOf:
        operands = subject.family.operands
        return OutputsOf(
            tuple(operands[pair.source].prompts[operation(pair)] for pair in subject.pairs)
        )

    real = sources(lambda pair: pair.source_operation)
    writes: dict[str, Write] = {
        "the other operation": real,
        "the same operation, other operands": sources(lambda pair: pair.target_operation),
        "the operation word neutralised": sources(lambda pair: None),
    }
    same_answer = _same_answer(subject)
    if same_answer is not None:
        writes["the same answer from the other operation"] = OutputsOf(same_answer)
    if subject.controls:
        unrelated = subject.controls[0]
        prompts = unrelated.prompts[: len(unrelated.operands)]  # prompts of its first operation
        writes["an unrelated family"] = OutputsOf(
            tuple(prompts[number % len(prompts)] for number in range(len(subject.pairs)))
        )
    writes["noise of the same norm"] = Noise(real.sources, subject.seed)
    return {
        **{name: [(subject.columns, write)] for name, write in writes.items()},
        "random heads": [(columns, real) for columns in subject.random_sets],
    }


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


def _targets(subject: StressSubject) -> tuple[Prompt, ...]:
    operands = subject.family.operands
    return tuple(operands[pair.target].prompts[pair.target_operation] for pair in subject.pairs)


def _changes(
    observe: Observe,
    subject: StressSubject,
    prompts: tuple[Prompt, ...],
    writes: Sequence[tuple[HeadColumns, Write]],
) -> list[Vector]:
    """Measures how each write changes log p(A(v)), log p(B(v)), log p(A(u)): `(pairs, 3)`."""
    tokens = []
    for pair in subject.pairs:
        u, v = subject.family.operands[pair.source], subject.family.operands[pair.target]
        a, b = pair.source_operation, pair.target_operation
        tokens.append((v.answers[a], v.answers[b], u.answers[a]))
    intact, *written = _log_probs(observe, prompts, tuple(tokens), writes)
    return [log_probs - intact for log_probs in written]


def _shift(changes: Vector) -> Values:
    """Returns the change of log p(A(v)) - log p(B(v)), pair by pair."""
    return (changes[:, 0] - changes[:, 1]).astype(np.float64)


def _margins(
    observe: Observe,
    prompts: tuple[Prompt, ...],
    answers: Tokens,
    writes: Sequence[tuple[HeadColumns, Write]],
) -> list[Values]:
    """Measures log p of the right first token minus that of the best foil, prompt by prompt."""
    measured = _log_probs(observe, prompts, answers, writes)
    return [
        (log_probs[:, 0] - log_probs[:, 1:].max(axis=1)).astype(np.float64)
        for log_probs in measured
    ]


def _log_probs(
    observe: Observe,
    prompts: tuple[Prompt, ...],
    tokens: Tokens,
    writes: Sequence[tuple[HeadColumns, Write]],
) -> list[Vector]:
    """Measures log-probabilities, `(prompts, tokens)`: intact, then under each write."""
    observations = [AnswerLogProbs(prompts, (), tokens)]
    observations += [AnswerLogProbs(prompts, columns, tokens, write) for columns, write in writes]
    return [vector.reshape(len(prompts), -1) for vector in observe(observations)]


def _interval(values: Values) -> Interval:
    return bootstrap_interval(values, np.zeros_like(values))
