"""One-shot greedy: ablate each component alone, take the k that hurt most."""

from __future__ import annotations

import numpy as np

from broca import designs
from broca.measurement import Measurement, Plan
from broca.searches.base import Problem, Ranking, most_negative


class OneShot:
    """Measures every component once, alone, on the same items as the intact model.

    Cost: (components + 1) x items rows.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._masks = np.vstack(
            [designs.intact(problem.components), designs.singles(problem.components)]
        )
        self._items = problem.items_within(len(self._masks), method="one-shot")
        self._measurement: Measurement | None = None

    def ask(self) -> Plan | None:
        """Asks once, for everything."""
        if self._measurement is not None:
            return None
        return Plan.crossed(self._masks, self._items)

    def tell(self, measurement: Measurement) -> None:
        """Takes the responses."""
        self._measurement = measurement

    def result(self) -> Ranking:
        """Ranks by the change against the intact model on the same items."""
        assert self._measurement is not None, "ask and tell first"
        means = self._measurement.mask_means()
        effects = means[1:] - means[0]
        order, selected, reason = most_negative(
            effects, self._problem.k, reason="no component alone lowers the score"
        )
        return Ranking(effects, order, selected, reason, {"items": len(self._items)})
