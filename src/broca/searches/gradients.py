"""Methods by gradients of the gates, whose effects are minus the mean slopes of the response.

Gradients are taken at the intact model, under random masks, on a path to closed gates, or in
training.
"""

from dataclasses import dataclass

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import GRADIENT_ROW, Floats, Plan
from broca.searches.method import Method
from broca.searches.pilot import random_masks
from broca.searches.problem import Problem, Ranking, Search

_FEWEST_ITEMS = 4
_ROWS_PER_ITEM = 4
_FEWEST_STEPS = 8
_START = 2.0
"""Initial logit of every gate: open in 88 % of the rows."""
_LIMIT = 4.0
"""Maximum absolute logit, so that every gate can still change."""
_TRAVEL = 2 * (_START + _LIMIT)
"""Total change of a logit by the push alone: twice the distance that closes a gate."""


class Gradient:
    """Minus the gradient with respect to the gates, all at 1, averaged over the items.

    Cost: 3 x items rows. Saturation misleads it: a component that has a backup, or whose ablation
    changes the answer only when the gate is fully closed, has no slope at the intact model.
    """

    def most_rows(self, problem: Problem) -> int:
        """Returns a row with its gradient for every item."""
        return GRADIENT_ROW * len(problem.affordable(GRADIENT_ROW, fewest=_FEWEST_ITEMS))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Averages the gradients of the items' responses."""
        items = problem.affordable(GRADIENT_ROW, fewest=_FEWEST_ITEMS)
        rows = np.zeros(len(items), dtype=np.intp)
        plan = Plan(designs.intact(problem.components), rows, items, gradients=True)
        samples, options = -problem.slopes((yield plan)), {"items": len(items)}
        reason = "no gate of the intact model lowers the response when it closes"
        return Ranking.of_samples(samples, problem.k, reason=reason, options=options)


@dataclass(frozen=True, kw_only=True)
class MaskedGradient:
    """Minus the gradient of the gates, averaged over rows that each ablate a random share.

    With some components ablated, backups show their effect and saturated responses change. Every
    row has its own mask, whose share is drawn uniformly between `low` and `high`. Cost: 12 x items
    rows, or as many as the budget has.

    Attributes:
        low: Smallest share of the components that a row ablates.
        high: Largest share.
    """

    low: float = 0.05
    high: float = 0.15

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < 1:
            raise BadInput(
                "the shares of gradient-masked must be 0 <= low <= high < 1, not "
                f"{self.low} and {self.high}"
            )

    def most_rows(self, problem: Problem) -> int:
        """Returns four rows with their gradients for every item, or as many as the budget has."""
        usual = GRADIENT_ROW * _ROWS_PER_ITEM
        fewest = usual * min(_FEWEST_ITEMS, len(problem.items))
        rows = problem.budget(usual * len(problem.items), fewest=fewest)
        return rows - rows % GRADIENT_ROW

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Averages the gradients of all rows."""
        count = self.most_rows(problem) // GRADIENT_ROW
        # more items are worth more than more masks on the same items
        row_items = np.resize(problem.drawn(count), count)
        rng = np.random.default_rng([problem.seed, 0x3A5C])
        sizes = np.round(rng.uniform(self.low, self.high, count) * problem.components)
        masks = random_masks(sizes, problem.components, rng)
        slopes = problem.slopes((yield Plan(masks, np.arange(count), row_items, gradients=True)))
        each = min(count, len(problem.items))  # rows of an item are no independent samples
        samples = -np.array([slopes[item::each].mean(axis=0) for item in range(each)])
        reason = "under random ablations no gate lowers the response when it closes"
        options = {"masks": count, "low": self.low, "high": self.high}
        return Ranking.of_samples(samples, problem.k, reason=reason, options=options)


@dataclass(frozen=True, kw_only=True)
class IntegratedGradient:
    """Minus the gradient, integrated while all gates go together from 1 to those of an ablation.

    It uses the midpoint rule with `steps` points. The effects of an item add up to its loss when
    everything is ablated, up to the error of the rule. Most of the path leads through models that
    can do nothing, which is its weakness for a single capability. Cost: 3 x steps x items rows.

    Attributes:
        steps: Number of points of the path.
    """

    steps: int = 8

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise BadInput(f"gradient-integrated takes 1 step or more, not {self.steps}")

    def most_rows(self, problem: Problem) -> int:
        """Returns a row with its gradient for every item and step."""
        each = GRADIENT_ROW * self.steps
        return each * len(problem.affordable(each, fewest=_FEWEST_ITEMS))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Adds up the gradients at the points of the path."""
        items = problem.affordable(GRADIENT_ROW * self.steps, fewest=_FEWEST_ITEMS)
        rows = np.zeros(len(items), dtype=np.intp)
        everything = np.ones((1, problem.components), dtype=bool)
        total = np.zeros((len(items), problem.components))
        for step in range(self.steps):
            scale = 1 - (1 - problem.scale) * (step + 0.5) / self.steps
            plan = Plan(everything, rows, items, gradients=True, scale=scale)
            total += problem.slopes((yield plan))
        reason = "on the path to closed gates no gate lowers the response"
        samples, options = -total / self.steps, {"items": len(items), "steps": self.steps}
        return Ranking.of_samples(samples, problem.k, reason=reason, options=options)


@dataclass(frozen=True, kw_only=True)
class LearnedGates:
    """Causal head gating with random binary gates: needed, harmful and irrelevant components.

    Every component has a probability of being open. A step draws the gates of each row of a batch,
    takes the gradient of the response in them, and moves the logits along it (mirror ascent), with
    a push towards open in one training and towards closed in the other. A component that stays open
    although pushed closed is needed (facilitating), a component that closes although pushed open is
    harmful (interfering), and a component that follows both pushes is irrelevant. The effect is the
    slope under the push that the component resists.

    Gates are binary instead of fractional, so that every row is an ordinary ablation, which the
    journal keeps for other methods. Cost: 3 x (2 x steps + 1) x batch rows.

    Attributes:
        push: Size of the push, as a share of the largest initial slope.
        steps: Number of steps of each training.
        batch: Rows of a step without a budget; a budget decides them.
    """

    push: float = 0.1
    steps: int = 24
    batch: int = 16

    def __post_init__(self) -> None:
        if not 0 < self.push < 1:
            raise BadInput(
                f"the push of learned-gates must lie between 0 and 1, not at {self.push:g}"
            )
        if self.steps < _FEWEST_STEPS or self.batch < 1:
            raise BadInput(
                f"learned-gates takes {_FEWEST_STEPS} steps or more of 1 row or more, not "
                f"{self.steps} of {self.batch}"
            )

    def most_rows(self, problem: Problem) -> int:
        """Returns the rows with their gradients of two trainings and of the first slopes."""
        steps, batch = self._training(problem)
        return GRADIENT_ROW * (2 * steps + 1) * batch

    def _training(self, problem: Problem) -> tuple[int, int]:
        """Returns the steps of each training and the rows of a step that the budget allows."""
        if problem.rows is None:
            return self.steps, self.batch
        fewest = GRADIENT_ROW * (2 * _FEWEST_STEPS + 1)
        rows = problem.budget(problem.rows, fewest=fewest) // GRADIENT_ROW
        steps = max(_FEWEST_STEPS, min(self.steps, (rows // 4 - 1) // 2))
        return steps, rows // (2 * steps + 1)

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Trains the gates under both pushes."""
        from scipy.special import expit

        steps, batch = self._training(problem)
        rng = np.random.default_rng([problem.seed, 0x6A7E])
        # in order, each training would see other tasks of a group
        items = rng.permutation(problem.drawn((2 * steps + 1) * batch))
        batches = iter(np.resize(items, (2 * steps + 1, batch)))

        def measure_slopes(logits: Floats) -> Search[Floats]:
            """Measures the mean gradient over a batch of random gates, `(components,)`."""
            masks = rng.random((batch, len(logits))) >= expit(logits)
            measurement = yield Plan(masks, np.arange(batch), next(batches), gradients=True)
            slopes: Floats = problem.slopes(measurement).mean(axis=0, dtype=np.float64)
            return slopes

        def train(push: float) -> Search[tuple[Floats, Floats]]:
            """Trains under one push.

            Returns:
                Means in the second half of the steps, `(components,)`: the probability of being
                open, and the slope of the response.
            """
            logits, rate = start, _TRAVEL / (steps * abs(push))
            gates, slopes = [], []
            for _ in range(steps):
                slope = yield from measure_slopes(logits)
                logits = np.clip(logits + rate * (slope + push), -_LIMIT, _LIMIT)
                gates.append(expit(logits))
                slopes.append(slope)
            later = steps // 2
            return np.mean(gates[later:], axis=0), np.mean(slopes[later:], axis=0)

        start = np.full(problem.components, _START)
        largest = float(np.abs((yield from measure_slopes(start))).max())
        record = {"push": self.push, "steps": steps, "batch": batch}
        if largest == 0:
            reason = "the response has no slope in any gate"
            return Ranking.of(np.zeros(problem.components), (), reason, record)
        opened, opened_slopes = yield from train(self.push * largest)
        closed, closed_slopes = yield from train(-self.push * largest)
        needed = closed >= 0.5
        harms = opened < 0.5
        effects = -closed * np.maximum(closed_slopes, 0)
        effects -= (1 - opened) * np.minimum(opened_slopes, 0)
        order = tuple(np.lexsort((effects, ~needed)).tolist())
        selected = tuple(c for c in order[: problem.k] if needed[c] and effects[c] < 0)
        groups = {
            "facilitating": tuple(c for c in order if needed[c]),
            "interfering": tuple(c for c in order if harms[c] and not needed[c]),
        }
        reason = "" if selected else "no gate stays open against the push to close"
        return Ranking(effects, order, selected, reason, record, groups=groups)


INTACT = Method(
    name="gradient", make=Gradient, response="probability", needs_gradients=True,
    measures="the gradient of the gates of the intact model",
    answers="which heads change the answer to first order", rows="3 x items",
    source="first-order ablation saliency, as in attribution patching (Nanda 2023; Syed et al., "
    "arXiv 2310.10348) with zero in the place of the other activation",
)  # fmt: skip
MASKED = Method(
    name="gradient-masked", make=MaskedGradient, response="probability", needs_gradients=True,
    measures="the gradient of the gates averaged over rows with 5 to 15 % of the heads off",
    answers="which heads change the answer when others are ablated", rows="12 x items",
)  # fmt: skip
INTEGRATED = Method(
    name="gradient-integrated", make=IntegratedGradient, response="probability",
    needs_gradients=True, measures="the gradient of the gates integrated while all gates close",
    answers="how the loss of all heads is shared among them", rows="24 x items",
    source="Sundararajan et al., arXiv 1703.01365, with gates in the place of inputs",
)  # fmt: skip
LEARNED_GATES = Method(
    name="learned-gates", make=LearnedGates, response="margin", needs_gradients=True,
    measures="gates trained under a push to open and one to close",
    answers="which heads are needed, harmful or irrelevant", rows="2,352",
    source="Nam et al., arXiv 2505.13737; it differs in its binary gates and its optimizer",
)  # fmt: skip
