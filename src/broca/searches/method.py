"""The record of a localization method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from broca.errors import BadInput, nearest
from broca.measurement import Response
from broca.searches.contrast import Contrasted
from broca.searches.problem import Problem, Ranking, Search, Strategy

_NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Method:
    """The record of a method.

    Attributes:
        name: Name of the method in `method`.
        measures: The masks that it measures, for the help and the docs.
        answers: The question that it answers, for the help and the docs.
        rows: Its number of rows without a budget, for the docs.
        usual_rows: Returns about that number for a problem.
        make: Makes its `Strategy` from options.
        source: Source of the method; empty for broca's own methods.
        response: Default response of its rows; `accuracy` is the task's own metric.
        needs_gradients: Whether it needs gradients of the response.
        measures_others: Whether it measures the other tasks too, to find the components that only
            the task needs.
        tuning: Options with which `cs-tuned` tries settings of this method; None if it has none.
        one_mask_size: Whether a regression uses only masks of the most frequent size; the others
            come from a pilot, which also tries sizes that destroy the task.
    """

    name: str
    measures: str
    answers: str
    rows: str
    usual_rows: Callable[[Problem], int]
    make: Callable[..., Strategy]
    source: str = ""
    response: Response = "accuracy"
    needs_gradients: bool = False
    measures_others: bool = False
    tuning: Mapping[str, Any] | None = None
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

    def weighs_others(self, options: Mapping[str, Any] = _NO_OPTIONS) -> bool:
        """Whether it measures the other tasks with these options, of which `contrast` is one."""
        return self.measures_others or bool(options.get("contrast"))

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
        if self.measures_others or "contrast" not in options:
            return self.make(**options)
        alone = self.make(**{name: options[name] for name in options if name != "contrast"})
        return Contrasted(alone, options["contrast"]) if options["contrast"] != 0 else alone

    def require(self, problem: Problem, options: Mapping[str, Any] = _NO_OPTIONS) -> Strategy:
        """Refuses a problem that `search` would refuse, without measuring or drawing anything.

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
        strategy.require(problem)
        return strategy

    def search(self, problem: Problem, options: Mapping[str, Any] = _NO_OPTIONS) -> Search[Ranking]:
        """Returns the search for the solution of a problem.

        Raises:
            BadInput: As in `require`.
        """
        return self.require(problem, options).generate(problem)
