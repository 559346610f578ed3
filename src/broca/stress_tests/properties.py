"""Necessity, decodability, reversal and transfer of a set of heads, and the verdict."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from broca.errors import SelfTestFailed
from broca.measurement import Ints, Observation
from broca.results.base import Interval
from broca.results.stress_test import Necessity, Probe, Reversal, Shift, StressLabel
from broca.stress_tests import patcher
from broca.stress_tests.patcher import OutputsOf, Prompts, RestoredPart, Write
from broca.stress_tests.subject import PromptPair, StressSubject, TokenizedFamily
from broca.verification.statistics import Aggregate, Values, bootstrap_interval

SUBSPACE = 4
"""Number of dimensions of the restored low-rank part."""

_FOLDS = 4
"""Number of folds of operands of a probe."""

_FOREIGN = ("an unrelated family", "noise of the same norm")
"""Controls that carry nothing of the source: what they change of its answer, anything changes."""

_BROAD = ("the operation word neutralised", *_FOREIGN)
"""Controls that carry no operation."""

Vector = NDArray[np.float32]

Observe = Callable[[Sequence[Observation]], list[Vector]]
"""Measures observations of one class; returns their vectors, in their order."""


Writes = Sequence[tuple[patcher.HeadColumns, Write]]
"""What is written in the place of which heads' outputs."""


def necessity(observe: Observe, subject: StressSubject, kind: str) -> Necessity:
    """Measures the drop of the margin without the heads, on the family and on the controls.

    Args:
        observe: Measures observations.
        subject: The subject of the test.
        kind: Kind of ablation, a key of `ABLATIONS`.
    """
    ablated = patcher.Ablated(kind, subject.seed)
    sets = [(columns, ablated) for columns in (subject.columns, *subject.random_sets)]
    drops: list[list[Values]] = []  # family by family, set by set
    for family in (subject.family, *subject.controls):
        intact, *margins = _margins(observe, family, sets)
        drops.append([intact - of_set for of_set in margins])
    selective, *null = [
        float(drop.mean() - max((other.mean() for other in others), default=0.0))
        for drop, *others in zip(*drops, strict=True)
    ]
    names = [family.name for family in subject.controls]
    controls = [float(drop[0].mean()) for drop in drops[1:]]
    return Necessity(
        ablation=kind, drop=_interval(drops[0][0]),
        controls=dict(zip(names, controls, strict=True)), selective=selective,
        null=tuple(null), rank=1 + sum(value >= selective for value in null),
    )  # fmt: skip


def decodability(observe: Observe, subject: StressSubject) -> Probe:
    """Tests whether a linear probe reads the operation from the heads' outputs.

    A logistic regression is trained on some operands and tested on others.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    family, questions = subject.family, subject.family.questions
    (vector,) = observe([patcher.HeadOutputs(family.prompts, subject.columns)])
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
    writes = [(subject.columns, write) for write in (patcher.Ablated(), *parts.values())]
    intact, ablated, *restored = _margins(observe, subject.family, writes)
    damage = _interval(intact - ablated)
    if damage.low <= 0:
        return ()
    of_mean = (intact - ablated) / damage.value

    def share(undone: Values, drawn: Ints) -> float:
        return float(undone.mean() / of_mean[drawn].mean())  # the damage varies with the draw too

    return tuple(
        Reversal(name, _interval((margins - ablated) / damage.value, share))
        for name, margins in zip(parts, restored, strict=True)
    )


def self_patch(observe: Observe, subject: StressSubject) -> None:
    """Writes a target's own outputs into it, which must change nothing.

    Raises:
        SelfTestFailed: The change is not zero.
    """
    targets = _targets(subject)
    (changes,) = _changes(observe, subject, targets, [(subject.columns, OutputsOf(targets))])
    largest = float(np.abs(changes).max())
    if largest != 0:
        raise SelfTestFailed(
            f"writing a prompt's own outputs into it changes a log-probability by {largest:.2g}:"
            " the patching is not exact on this model, no figure would mean anything"
        )


def transfer(observe: Observe, subject: StressSubject) -> tuple[Shift, ...]:
    """Measures the effect of writing sources into targets: the real write, then the controls."""
    operands, pairs, columns = subject.family.operands, subject.pairs, subject.columns

    def sources(operation: Callable[[PromptPair], str | None]) -> OutputsOf:
        return OutputsOf(tuple(pair.source.prompts[operation(pair)] for pair in pairs))

    real = sources(lambda pair: pair.source_operation)
    writes: dict[str, Write] = {
        "the other operation": real,
        "the same operation, other operands": sources(lambda pair: pair.target_operation),
        "the operation word neutralised": sources(lambda pair: None),
    }
    fitting = [  # prompts of A whose answer begins like the target's
        [
            operand.prompts[pair.source_operation]
            for operand in operands
            if operand.template == pair.target.template
            and operand.answers[pair.source_operation] == pair.target.answers[pair.target_operation]
        ]
        for pair in pairs
    ]
    if all(fitting):
        same_answer = tuple(prompts[0] for prompts in fitting)
        writes["the same answer from the other operation"] = OutputsOf(same_answer)
    if subject.controls:
        unrelated = subject.controls[0]
        prompts = unrelated.prompts[: len(unrelated.operands)]  # prompts of its first operation
        writes["an unrelated family"] = OutputsOf(tuple(islice(cycle(prompts), len(pairs))))
    writes["noise of the same norm"] = patcher.Noise(real.sources, subject.seed)
    arms = [*((columns, write) for write in writes.values())]
    arms += [(random_set, real) for random_set in subject.random_sets]
    changes = _changes(observe, subject, _targets(subject), arms)
    shifts = [_shift(change) for change in changes]
    moved, *controls = zip(writes, shifts, strict=False)
    if subject.random_sets:
        controls.append(("random heads", np.mean(shifts[len(writes) :], axis=0)))
    copied = [_interval(change[:, 2].astype(np.float64)) for change in changes[: len(writes)]]
    return (
        Shift(moved[0], _interval(moved[1]), copied[0], None),
        *(
            Shift(name, _interval(c), copying, _interval(moved[1] - c))
            for (name, c), copying in zip_longest(controls, copied[1:])
        ),
    )


def positive_control(observe: Observe, subject: StressSubject) -> Interval:
    """Writes the operation's mean offset into all heads of neutral prompts, which must work.

    The offset is the mean difference over operands between the outputs on the operation's prompts
    and on the neutral prompts; the change of log p(A(v)) - log p(B(v)) is compared with that of an
    offset of the same norm in random directions.
    """
    operands, operations = subject.family.operands, subject.family.operations
    *asking, neutral = (
        tuple(operand.prompts[name] for operand in operands) for name in (*operations, None)
    )
    indices = tuple(operations.index(pair.source_operation) for pair in subject.pairs)
    offset = patcher.OperationOffset(tuple(asking), neutral, indices)
    prompts = tuple(pair.target.prompts[None] for pair in subject.pairs)
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
    foreign = [
        shift.copying.high for shift in controls if shift.source in _FOREIGN and shift.copying
    ]
    copied = real.copying if real.copying and real.copying.low > max([0.0, *foreign]) else None
    if real.transfer.low <= 0:
        if copied:
            return "answer-bias", (
                f"{moved}, but it raises the source's own answer by {_nats(copied)}."
            )
        return "inert", f"{moved}: no transfer, where the positive control moves {_nats(positive)}."
    if copied and copied.low > real.transfer.high:
        return "answer-bias", f"{moved}, and the source's own answer by more, {_nats(copied)}."
    equal = [shift.source for shift in controls if shift.beyond and shift.beyond.low <= 0]
    broad = [source for source in equal if source in _BROAD]
    if broad:
        return "broad-state", f"{moved}, but {broad[0]} does as much."
    if equal:
        return "soft", f"{moved}, but not significantly more than {equal[0]}."
    return "transfers", f"{moved}, more than each of {len(controls)} controls."


def _nats(interval: Interval) -> str:
    return f"{interval.value:+.2f} nats [{interval.low:+.2f}, {interval.high:+.2f}]"


def _targets(subject: StressSubject) -> Prompts:
    return tuple(pair.target.prompts[pair.target_operation] for pair in subject.pairs)


def _changes(
    observe: Observe, subject: StressSubject, prompts: Prompts, writes: Writes
) -> list[Vector]:
    """Measures how each write changes log p(A(v)), log p(B(v)), log p(A(u)): `(pairs, 3)`."""
    tokens = tuple(pair.tokens for pair in subject.pairs)
    intact, *written = _log_probs(observe, prompts, tokens, writes)
    return [log_probs - intact for log_probs in written]


def _shift(changes: Vector) -> Values:
    """Returns the change of log p(A(v)) - log p(B(v)), pair by pair."""
    return (changes[:, 0] - changes[:, 1]).astype(np.float64)


def _margins(observe: Observe, family: TokenizedFamily, writes: Writes) -> list[Values]:
    """Measures log p of the right first token minus that of the best foil, prompt by prompt."""
    return [
        (log_probs[:, 0] - log_probs[:, 1:].max(axis=1)).astype(np.float64)
        for log_probs in _log_probs(observe, family.prompts, family.answers, writes)
    ]


def _log_probs(
    observe: Observe, prompts: Prompts, tokens: tuple[tuple[int, ...], ...], writes: Writes
) -> list[Vector]:
    """Measures log-probabilities, `(prompts, tokens)`: intact, then under each write."""
    observations = [patcher.AnswerLogProbs(prompts, (), tokens)]
    observations += [
        patcher.AnswerLogProbs(prompts, columns, tokens, write) for columns, write in writes
    ]
    return [vector.reshape(len(prompts), -1) for vector in observe(observations)]


def _interval(values: Values, aggregate: Aggregate | None = None) -> Interval:
    return bootstrap_interval(values, np.zeros_like(values), aggregate=aggregate)
