"""What a stress test measured: `stress.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import Interval, ModelInfo, Result, listed

StressLabel = Literal["transfers", "soft", "answer-bias", "broad-state", "inert", "inconclusive"]
"""The verdicts; docs/stress.md has the rule."""


@dataclass(frozen=True)
class Necessity:
    """Drop of the margin under ablation, in nats.

    Attributes:
        ablation: What stood in for the heads.
        drop: On the family.
        controls: On each control family.
        selective: The drop minus the largest of the control families'.
        null: The same for random sets of the same layers.
        rank: 1 + the number of random sets that reach the real one.
    """

    ablation: str
    drop: Interval
    controls: dict[str, float]
    selective: float
    null: tuple[float, ...]
    rank: int


@dataclass(frozen=True)
class Probe:
    """Accuracy of a linear probe of the operation, on operands it has not seen.

    Attributes:
        accuracy: From the heads' outputs at the last token.
        templates: The same on a template it has not seen; None with a single one.
        shuffled: With shuffled labels.
        surface: From the operand's tokens alone.
        chance: Share of the most common operation.
        items: Prompts probed.
    """

    accuracy: float
    templates: float | None
    shuffled: float
    surface: float
    chance: float
    items: int


@dataclass(frozen=True)
class Reversal:
    """What restoring a part of the ablated outputs undoes.

    Attributes:
        part: What is restored.
        share: Share of the damage that it undoes.
    """

    part: str
    share: Interval


@dataclass(frozen=True)
class Shift:
    """What writing a source's outputs into a target changes, in nats.

    Attributes:
        source: Where the outputs come from.
        transfer: Change of log p(A(v)) - log p(B(v)).
        copying: Change of log p(A(u)), the source's own answer; None where there is none.
        beyond: Transfer of the real write minus this one, paired; None for the real one.
    """

    source: str
    transfer: Interval
    copying: Interval | None
    beyond: Interval | None


@dataclass(frozen=True, kw_only=True, repr=False)
class StressTest(Result, file="stress.json", page="stress.html", verb="broca stress"):
    """A stress test of one set of heads.

    Attributes:
        model: The model.
        family: The family of prompts.
        heads: The set.
        seed: Seed of pairs, random sets and resampling.
        pairs: Source and target pairs.
        necessity: Selective necessity, ablation by ablation.
        probe: Decodability.
        reversals: Reversal by strict subsets.
        shifts: The write and its controls; the first is the real one.
        self_patch: Largest change of any log-probability when a prompt's own outputs are written
            into it: exactly zero, or nothing here means anything.
        positive_control: Shift of the write that must work.
        verdict: In a word.
        text: In a sentence.
        notes: What the reader should know.
    """

    kind: Literal["stress test"] = "stress test"
    model: ModelInfo
    family: str
    heads: tuple[str, ...]
    seed: int
    pairs: int
    necessity: tuple[Necessity, ...]
    probe: Probe | None
    reversals: tuple[Reversal, ...]
    shifts: tuple[Shift, ...]
    self_patch: float
    positive_control: Interval
    verdict: StressLabel
    text: str
    notes: tuple[str, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The set that was tested."""
        return self.heads

    def summary(self) -> tuple[str, ...]:
        """The verdict, the set and what was measured."""
        return (
            f"{self.verdict}: {self.text}",
            f"{self.model.name}, family {self.family}: {listed(self.heads)}",
            f"{self.pairs} pairs, seed {self.seed}",
        )

    def records(self) -> list[dict[str, Any]]:
        """A line for each interval: necessity, reversal and transfer, one after the other."""
        intervals = [
            *(("necessity", line.ablation, line.drop) for line in self.necessity),
            *(("reversal", line.part, line.share) for line in self.reversals),
            *(("transfer", line.source, line.transfer) for line in self.shifts),
            *(("copying", line.source, line.copying) for line in self.shifts if line.copying),
            ("positive control", "", self.positive_control),
        ]
        return [
            {
                "measure": measure, "of": name,
                "value": interval.value, "low": interval.low, "high": interval.high,
            }
            for measure, name, interval in intervals
        ]  # fmt: skip
