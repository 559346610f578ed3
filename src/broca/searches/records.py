"""What is known of a localization method, in one record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

from broca.errors import BadInput, nearest
from broca.measurement import Response
from broca.searches.base import GeneratorSearch, Problem, Ranking, Strategy
from broca.searches.contrasted import Contrasted

Losses = Literal["none", "additive", "random"]
"""Responses that an estimate invents for a search whose rows it counts: `none` loses nothing,
`additive` a little for each ablated component, `random` is noise."""

_NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Method:
    """All that is known of a method. To add one, add a file that defines its record.

    Attributes:
        name: The name that `method` takes.
        measures: What it measures, for the menu and the docs.
        answers: Which question it answers, likewise.
        rows: What it costs without a budget, likewise.
        make: Makes its `Strategy` from options.
        order: Its place on the menu; equal places are ordered by name.
        source: Where it comes from; empty for broca's own.
        response: What its rows measure where the user does not say; `accuracy` is the task's own
            metric.
        needs_gradients: Whether it needs gradients of the response.
        measures_others: Whether it measures the other tasks too, to tell what the task alone needs.
        tuning: Options with which `cs-tuned` tries settings of this method; None if it cannot.
        one_mask_size: Whether only masks of its most frequent size take part in a regression: the
            others come from a pilot that also tried sizes that leave nothing of the task.
        counting: Options with which it asks for the most rows and does nothing slow besides, for
            estimates.
        most: Maximum number of rows for a problem without a budget; None where its plans are
            counted.
        counted_losses: Responses that make it ask for the most rows, for estimates.
    """

    name: str
    measures: str
    answers: str
    rows: str
    make: Callable[..., Strategy]
    order: int = 100
    source: str = ""
    response: Response = "accuracy"
    needs_gradients: bool = False
    measures_others: bool = False
    tuning: Mapping[str, Any] | None = None
    one_mask_size: bool = False
    counting: Mapping[str, Any] = field(default_factory=dict)
    most: Callable[[Problem], int] | None = None
    counted_losses: Losses = "none"

    @property
    def help(self) -> str:
        """What it measures and answers, in one sentence."""
        return f"{self.measures[:1].upper()}{self.measures[1:]}: {self.answers}."

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """Its options by name, with their defaults."""
        preset = set(self.make.keywords) if isinstance(self.make, partial) else set()
        parameters = inspect.signature(self.make).parameters
        own = {name: value.default for name, value in parameters.items() if name not in preset}
        return own if self.measures_others else {**own, "contrast": 0.0}

    def weighs_others(self, options: Mapping[str, Any] = _NO_OPTIONS) -> bool:
        """Whether it measures the other tasks with these options: every method has a contrast."""
        return self.measures_others or bool(options.get("contrast"))

    def require_options(self, names: Iterable[str]) -> None:
        """Refuses options that the method does not have.

        Raises:
            BadInput: The method has no such option.
        """
        for name in names:
            if name not in self.options:
                has = f"it has {', '.join(sorted(self.options))}" if self.options else "it has none"
                raise BadInput(
                    f"method '{self.name}' has no option '{name}'{nearest(name, self.options)}; "
                    f"{has}"
                )

    def strategy(self, options: Mapping[str, Any] = _NO_OPTIONS) -> Strategy:
        """The method with its options set.

        Raises:
            BadInput: The method has no such option, or it cannot have such a value.
        """
        self.require_options(options)
        if self.measures_others or "contrast" not in options:
            return self.make(**options)
        own = {name: value for name, value in options.items() if name != "contrast"}
        weight = options["contrast"]
        if not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
            raise BadInput(f"contrast must be 0 or more, not {weight!r}")
        alone = self.make(**own)
        return Contrasted(strategy=alone, weight=float(weight)) if weight else alone

    def require(self, problem: Problem, options: Mapping[str, Any] = _NO_OPTIONS) -> Strategy:
        """Refuses what `search` would refuse; nothing is measured or drawn.

        Before it is known which items have a margin, say that all have one: what only measuring
        shows is then taken for the best.

        Raises:
            BadInput: The options make no sense, the budget is too small, or rows return no
                gradient where it needs one.
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

    def search(
        self, problem: Problem, options: Mapping[str, Any] = _NO_OPTIONS
    ) -> GeneratorSearch[Ranking]:
        """The search for a solution of a problem.

        Raises:
            BadInput: As `require`.
        """
        return GeneratorSearch(self.require(problem, options).generate(problem))
