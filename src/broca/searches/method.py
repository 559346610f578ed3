"""The record of a localization method, and its contrast with other tasks."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from broca import designs
from broca.errors import BadInput, TooFewRows, nearest
from broca.measurement import Floats, Measurement, Plan, Response
from broca.searches.problem import Problem, Ranking, Search, Strategy, answered

_NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Method:
    """The record of a method.

    Attributes:
        name: Name of the method in `method`.
        measures: The masks that it measures, for the help and the docs.
        answers: The question that it answers, for the help and the docs.
        rows: Its number of rows without a budget, for the docs.
        make: Makes its `Strategy` from options.
        source: Source of the method; empty for broca's own methods.
        response: Default response of its rows; `accuracy` is the task's own metric.
        needs_gradients: Whether it needs gradients of the response.
        measures_others: Whether it measures the other tasks too, to find the components that only
            the task needs.
        one_mask_size: Whether a regression uses only masks of the most frequent size; the others
            come from a pilot, which also tries sizes that destroy the task.
    """

    name: str
    measures: str
    answers: str
    rows: str
    make: Callable[..., Strategy]
    source: str = ""
    response: Response = "accuracy"
    needs_gradients: bool = False
    measures_others: bool = False
    one_mask_size: bool = False

    @property
    def help(self) -> str:
        """The masks that it measures and the question that it answers, in one sentence."""
        return f"{self.measures[:1].upper()}{self.measures[1:]}: {self.answers}."

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The options by name, with their defaults."""
        preset = set(self.make.keywords) if isinstance(self.make, partial) else set()
        parameters = inspect.signature(self.make).parameters
        defaults = {
            name: parameter.default for name, parameter in parameters.items() if name not in preset
        }
        return defaults if self.measures_others else {**defaults, "contrast": 0.0}

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        """The types of the options; words from a list are checked where the list is.

        So are those of a method with types that only type checkers import.
        """
        try:
            signature = inspect.signature(self.make, eval_str=True)
        except (AttributeError, NameError, TypeError):
            signature = inspect.Signature()
        return {"contrast": float} | {
            name: parameter.annotation
            for name, parameter in signature.parameters.items()
            if parameter.annotation is not parameter.empty
            and "Literal" not in str(parameter.annotation)
        }

    def weighs_others(self, options: Mapping[str, Any] = _NO_OPTIONS) -> bool:
        """Whether it measures the other tasks with these options, of which `contrast` is one."""
        return bool(options.get("contrast", self.measures_others))

    def strategy(self, options: Mapping[str, Any] = _NO_OPTIONS) -> Strategy:
        """Returns the method with its options.

        Raises:
            BadInput: The method has no such option, or the option has an invalid value.
        """
        for name in options:
            if name not in self.options:
                has = f"it has {', '.join(sorted(self.options))}" if self.options else "it has none"
                raise BadInput(
                    f"method '{self.name}' has no option '{name}'{nearest(name, self.options)}; "
                    f"{has}"
                )
            try:
                msgspec.convert(options[name], self._types.get(name, Any))
            except msgspec.ValidationError as error:
                raise BadInput(
                    f"option {name} {options[name]!r} of method '{self.name}': {error}"
                ) from error
        if self.measures_others or "contrast" not in options:
            return self.make(**options)
        alone = self.make(**{name: options[name] for name in options if name != "contrast"})
        return Contrasted(alone, options["contrast"]) if options["contrast"] != 0 else alone

    def most_rows(self, problem: Problem, options: Mapping[str, Any] = _NO_OPTIONS) -> int:
        """Returns the largest number of rows that a search may measure, without measuring anything.

        Before it is known which items have a margin, assume that all have one.

        Raises:
            BadInput: The options are invalid, the budget is too small, or the method needs
                gradients and rows return none.
        """
        strategy = self.strategy(options)
        if self.needs_gradients and not problem.differentiable:
            raise BadInput(
                f"method '{self.name}' needs gradients, and the response or the model has none: "
                "set `response` to probability or margin, or use a method without them, such as "
                "cs-stratified"
            )
        return strategy.most_rows(problem)

    def search(self, problem: Problem, options: Mapping[str, Any] = _NO_OPTIONS) -> Search[Ranking]:
        """Returns the search for the solution of a problem.

        Raises:
            BadInput: As in `most_rows`; while it runs, the method measures more than that, or items
                that are not the problem's, such as held-out ones, or its ranking is no valid one.
        """
        most = self.most_rows(problem, options)
        return self._checked(problem, self.strategy(options).generate(problem), most)

    def _checked(self, problem: Problem, search: Search[Ranking], most: int) -> Search[Ranking]:
        left, count = most, problem.components
        parts = [part for task in problem.others for part in (task.items, task.confirm)]
        own = np.concatenate([problem.items, problem.confirm, problem.texts, *parts])

        def answer(plan: Plan) -> Search[Measurement]:
            nonlocal left
            if plan.masks.shape[1] != count or not np.isin(plan.item_index, own).all():
                raise BadInput(
                    f"method '{self.name}' must measure masks of the {count} components on items "
                    "of its problem, such as those in `problem.items`: correct it"
                )
            left -= max(1, plan.cost)  # a method that asks for nothing for ever ends too
            if left < 0:
                raise BadInput(
                    f"method '{self.name}' measures {most - left:,} rows, and its `most_rows` says "
                    f"at most {most:,}: correct one of them"
                )
            return (yield plan)

        found = yield from answered(search, answer)
        if not (
            isinstance(found, Ranking)
            and np.isfinite(found.effects).tolist() == [True] * count
            and sorted(found.order) == [*range(count)]
            and len({*found.selected} & {*found.order}) == len(found.selected) <= problem.k
            and {*found.universal}.union(*found.groups.values()) <= {*found.order}
            and (found.intervals is None or np.shape(found.intervals) == (count, 2))
            and all(
                values is None or np.shape(values) == (count,)
                for values in (found.frequency, found.others, found.p_values, found.q_values)
            )
        ):
            raise BadInput(
                f"method '{self.name}' must return a Ranking: an effect of each component, none of "
                "them NaN, all in order, at most k selected, statistics of each, and columns that "
                "exist; correct it, or give more `rows`"
            )
        return found


@dataclass(frozen=True)
class Contrasted:
    """Estimates effects on the difference between the task's loss and the other tasks' losses.

    Every item of the task has a partner, an item of one of the other tasks in turn. If the method
    requests an item under a mask, the partner is measured under the same mask, and the method
    receives the item's response plus `weight` times the partner's loss; likewise for gradients.
    Pairs are the same under all masks, so that differences between items cancel as without a
    contrast.

    The budget covers both: the method has half of the rows that remain after as many intact
    responses as the task has items. Partners are those of the `locate` items, the only items that
    the method sees.

    Attributes:
        strategy: The method with its options.
        weight: Weight of a loss of the others.
    """

    strategy: Strategy
    weight: float

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise BadInput(f"contrast must be 0 or more, not {self.weight!r}")

    def most_rows(self, problem: Problem) -> int:
        """Returns twice the rows of the method, and those of the partners' intact responses."""
        if not problem.others:
            raise BadInput(
                "`contrast` weighs the losses of other tasks, and there are none: name some in "
                "`others`, or leave `contrast` out"
            )
        items = len(problem.items)
        try:
            return 2 * self.strategy.most_rows(self._alone(problem)) + items
        except TooFewRows as error:
            raise TooFewRows(problem.rows or 0, 2 * error.fewest + items) from None

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Runs the method on responses from which the partners' losses are subtracted."""
        count, others = len(problem.items), [other.items for other in problem.others]
        turns = -(-count // len(others))
        # spread over each task, whose first items may be of one task of a group
        drawn = [items[turn * len(items) // turns] for turn in range(turns) for items in others]
        partners = np.zeros(problem.items.max() + 1, dtype=np.intp)
        partners[problem.items] = drawn[:count]
        intact: dict[Response | None, Floats] = {}

        def answer(plan: Plan) -> Search[Measurement]:
            if plan.response not in intact:
                none, items = designs.intact(problem.components), np.unique(drawn[:count])
                alone = yield Plan.crossed(none, items, response=plan.response)
                intact[plan.response] = np.full(items.max() + 1, np.nan)
                intact[plan.response][items] = alone.responses
            paired = partners[plan.item_index]
            measured = yield replace(
                plan,
                mask_index=np.tile(plan.mask_index, 2),
                item_index=np.concatenate([plan.item_index, paired]),
            )
            responses, of_partners = np.split(measured.responses, 2)
            beyond = responses + self.weight * (intact[plan.response][paired] - of_partners)
            gradients = None
            if measured.gradients is not None:
                first, second = np.split(measured.gradients, 2)
                gradients = first - np.float32(self.weight) * second
            return Measurement(plan, beyond, gradients)

        ranking = yield from answered(self.strategy.generate(self._alone(problem)), answer)
        return replace(ranking, options={**ranking.options, "contrast": float(self.weight)})

    def _alone(self, problem: Problem) -> Problem:
        """Returns the problem of the method: only the task, and its share of the rows."""
        rows = None if problem.rows is None else max(0, problem.rows - len(problem.items)) // 2
        return replace(problem, others=(), confirm=problem.confirm[:0], rows=rows)
