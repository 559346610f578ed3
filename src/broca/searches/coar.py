"""Component attribution by regression: for every item a linear model of random ablations."""

from dataclasses import dataclass

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.method import Method
from broca.searches.problem import Problem, Ranking, Search

MASKS_PER_COMPONENT = 2


@dataclass(frozen=True, kw_only=True)
class Coar:
    """Regresses every item's responses on its own random masks; averages the coefficients.

    Each mask ablates each component with probability `share`; every item has its own masks and the
    intact mask. The regression is least squares with an intercept and without a penalty, so that an
    item needs more masks than there are components: 2 x components, or more if the budget allows.
    Cost: (2 x components + 1) x items rows.

    Attributes:
        share: Mean share of the components that a mask ablates.
    """

    share: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BadInput(f"the share of coar must lie between 0 and 1, not at {self.share:g}")

    def most_rows(self, problem: Problem) -> int:
        """Returns the rows of the items that the budget allows, each with as many masks."""
        masks = MASKS_PER_COMPONENT * problem.components + 1
        items = len(problem.affordable(masks))
        return items * (masks if problem.rows is None else problem.rows // items)

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Averages the coefficients of the items' regressions."""
        components = problem.components
        items = problem.affordable(MASKS_PER_COMPONENT * components + 1)
        per_item = self.most_rows(problem) // len(items)
        count = per_item - 1
        rng = np.random.default_rng([problem.seed, 0xC0A2])
        tables = []
        for _ in items:
            drawn = rng.random((count, components)) < self.share
            missing = np.flatnonzero(~drawn.any(axis=0))  # ablated by none of the item's masks
            drawn[rng.integers(count, size=len(missing)), missing] = True
            tables.append(np.vstack([designs.intact(components), drawn]))
        masks = np.vstack(tables)
        measurement = yield Plan(masks, np.arange(len(masks)), np.repeat(items, per_item))
        responses = measurement.responses.reshape(len(items), per_item)
        constant = np.ones((per_item, 1))
        coefficients = [
            np.linalg.lstsq(np.hstack([constant, table]), y, rcond=None)[0][1:]
            for table, y in zip(tables, responses, strict=True)
        ]
        reason = "the regressions give no component a coefficient that is significantly negative"
        options = {"items": len(items), "masks": count, "share": self.share}
        return Ranking.of_samples(coefficients, problem.k, reason=reason, options=options)


METHOD = Method(
    name="coar", make=Coar, response="probability",
    measures="a linear regression on random ablations for every item, averaged",
    answers="which heads matter to the average item", rows="2 x heads x items",
    source="COAR (Shah et al., arXiv 2404.11534), on the components of a language model",
)  # fmt: skip
