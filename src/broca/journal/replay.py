"""Answers a run's plans from its journal, without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broca.errors import NotInJournal
from broca.journal.store import Journal
from broca.measurement import Measurement, Plan


class Replay:
    """Returns the recorded responses of a search, plan by plan.

    Args:
        journal: An open journal, read-only or not.
        run: Number of the run.
        components: Names of the columns of masks.
        role: Purpose of the plans.
    """

    def __init__(
        self, journal: Journal, run: int, *, components: Sequence[str], role: str = "search"
    ) -> None:
        self._journal = journal
        self._components = tuple(components)
        self._plans = journal.query(
            "SELECT condition, masks, items FROM plans WHERE run = ? AND role = ? ORDER BY number",
            (run, role),
        )
        self._answered = 0
        self._places: dict[int, int] = {}

    def run(self, plan: Plan) -> Measurement:
        """Reads the rows of the next plan, which must equal the recorded plan.

        Raises:
            NotInJournal: The run ended before, or requested other rows.
        """
        if self._answered == len(self._plans):
            raise self._missing(f"the run ended after {self._answered} plans")
        condition, masks_then, items_then = self._plans[self._answered]
        masks = self._journal.find_masks(plan.masks, self._components)[plan.mask_index]
        items = np.frombuffer(items_then, dtype="<i8").astype(np.int64)
        if not np.array_equal(masks, np.frombuffer(masks_then, dtype="<i8")):
            raise self._missing(f"plan {self._answered} asked for other masks")
        if not self._same_places(plan.item_index, items):
            raise self._missing(f"plan {self._answered} asked for other items")
        known, responses = self._journal.known(condition, masks, items)
        if not known.all():
            raise self._missing(f"{int((~known).sum())} of {len(known)} rows were not measured")
        self._answered += 1
        gradients = None
        if plan.gradients:
            gradients = self._journal.gradients(
                condition, masks, items, components=plan.masks.shape[1]
            )
        return Measurement(plan, responses, gradients)

    def _same_places(self, positions: NDArray[np.intp], items: NDArray[np.int64]) -> bool:
        """Whether every position of the bank has the same item in all plans."""
        if len(positions) != len(items):
            return False
        pairs = zip(positions.tolist(), items.tolist(), strict=True)
        return all(self._places.setdefault(position, item) == item for position, item in pairs)

    def _missing(self, what: str) -> NotInJournal:
        return NotInJournal(
            f"the run cannot be repeated from journal '{self._journal.name}' ({what}): give its "
            "command again, which goes on where it ended"
        )
