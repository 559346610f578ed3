"""Localization methods: one file each, which defines the method's record."""

from __future__ import annotations

from typing import Any

from broca.errors import UnknownName, nearest
from broca.options import DEFAULT_METHOD
from broca.plugins import Plugins
from broca.recovery import recovery_name
from broca.searches import (
    co_ablation,
    coar,
    compressed,
    fresh,
    gradient,
    greedy,
    learned_gates,
    one_shot,
    pooled,
    thompson,
    tuned,
)
from broca.searches.atlas import FEWEST_ROWS
from broca.searches.method import Method
from broca.searches.problem import OtherTask, Problem, Ranking, Search, Strategy, run

METHODS = Plugins(
    Method,
    pooled.METHOD,
    one_shot.METHOD,
    greedy.METHOD,
    compressed.BERNOULLI,
    compressed.STRATIFIED,
    thompson.METHOD,
    coar.METHOD,
    co_ablation.METHOD,
    gradient.INTACT,
    gradient.MASKED,
    gradient.INTEGRATED,
    learned_gates.METHOD,
    fresh.METHOD,
    tuned.METHOD,
    group="broca.searches",
)
"""Every method by the name that `method` accepts."""


def require_method(method: str) -> Method:
    """Returns the record of a method.

    Raises:
        UnknownName: No method has this name.
    """
    if method not in METHODS:
        raise UnknownName(
            f"method '{method}' is unknown{nearest(method, METHODS)}; use one of "
            f"{', '.join(METHODS)}"
        )
    return METHODS[method]


def written(option: Any) -> Any:
    """Returns an option as plain data; an estimator becomes its scikit-learn text."""
    return recovery_name(option) if hasattr(option, "get_params") else option


def make_search(method: str, problem: Problem, **options: Any) -> Search[Ranking]:
    """Makes the search called `method`.

    Raises:
        UnknownName: No method has this name.
        BadInput: The method has no such option, or the budget is too small.
    """
    return require_method(method).search(problem, options)


__all__ = [
    "DEFAULT_METHOD",
    "FEWEST_ROWS",
    "METHODS",
    "Method",
    "OtherTask",
    "Problem",
    "Ranking",
    "Search",
    "Strategy",
    "make_search",
    "require_method",
    "run",
    "written",
]
