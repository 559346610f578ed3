"""What a stress test measured, as plain data: `stress.json`, schema 1."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from broca.errors import BadInput
from broca.results.verification import Interval, rebuild

SCHEMA = 1

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
    """Share of the ablation's damage that restoring a part of it undoes."""

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


@dataclass(frozen=True)
class StressTest:
    """A stress test of one set of heads.

    Attributes:
        model: Name of the model.
        fingerprint: Digest of its weights.
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
    """

    model: str
    fingerprint: str
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
    schema: int = SCHEMA

    def to_json(self) -> str:
        """The record as indented JSON, keys in a fixed order."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: str | Path) -> StressTest:
        """Reads a `stress.json`.

        Raises:
            BadInput: It cannot be read, is no stress test, or is of another schema.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data["schema"] != SCHEMA:
                raise BadInput(
                    f"'{path}' has schema {data['schema']}, this broca reads schema {SCHEMA}: use "
                    "the version of broca that wrote it"
                )
            found: StressTest = rebuild(cls, data)
            return found
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"'{path}' is not a stress test of broca ({type(error).__name__}: {error}); run "
                "`broca stress` again"
            ) from error
