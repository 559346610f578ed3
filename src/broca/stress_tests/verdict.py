"""The verdict of a stress test; docs/stress.md states the rule."""

from __future__ import annotations

from collections.abc import Sequence

from broca.results.base import Interval
from broca.results.stress_test import Shift, StressLabel

_BROAD = ("the operation word neutralised", "an unrelated family", "noise of the same norm")
"""Controls that carry no operation; their effect is that of any disturbance."""


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
