"""Answers plans from a journal alone, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from broca.errors import NotInJournal
from broca.journal.keys import Condition
from broca.journal.store import Journal
from broca.plan import Measurement, Plan


class KnownExecutor:
    """Reads what was measured; the journal may be open for reading only.

    Args:
        journal: An open journal.
        condition: What was measured, besides mask and item.
        components: Names of the columns of masks.
        items: Ids of the bank of items, `(items,)`.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        condition: Condition,
        components: Sequence[str],
        items: NDArray[np.int64],
    ) -> None:
        self._journal = journal
        self._condition = condition
        self._components = tuple(components)
        self._items = items

    def run(self, plan: Plan) -> Measurement:
        """Reads every row of a plan.

        Raises:
            NotInJournal: Some were never measured.
        """
        wanted = Condition(**{**asdict(self._condition), "gradients": plan.gradients})
        condition = self._journal.find_condition(wanted)
        masks = self._journal.find_masks(plan.masks, self._components)[plan.mask_index]
        items = self._items[plan.item_index]
        there, responses = self._journal.known(condition, masks, items)
        if not there.all():
            raise NotInJournal(
                f"{int((~there).sum())} of {len(there)} rows are not in journal "
                f"'{self._journal.name}': give the command of the run again, which goes on where "
                "it ended"
            )
        gradients = (
            self._journal.gradients(condition, masks, items, components=plan.masks.shape[1])
            if plan.gradients
            else None
        )
        return Measurement(plan, responses, gradients)
