"""Localization methods: one file each, all with `ask`, `tell` and `result`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from broca import designs
from broca.errors import BadInput, UnknownName, nearest
from broca.measurement import Response
from broca.recovery import recovery_name
from broca.searches.base import OtherTask, Problem, Ranking, Search, run
from broca.searches.co_ablation import CoAblation
from broca.searches.coar import Coar
from broca.searches.compressed import CompressedSensing
from broca.searches.focus import Focus
from broca.searches.fresh import FreshMasks
from broca.searches.gradient import Gradient
from broca.searches.gradient_integrated import IntegratedGradient
from broca.searches.gradient_masked import MaskedGradient
from broca.searches.greedy import Greedy
from broca.searches.learned_gates import LearnedGates
from broca.searches.one_shot import OneShot
from broca.searches.thompson import Thompson
from broca.searches.tuned import Tuned

METHODS: dict[str, Callable[..., Search]] = {
    "focus": Focus,
    "one-shot": OneShot,
    "greedy": Greedy,
    "cs-bernoulli": partial(CompressedSensing, design=designs.bernoulli),
    "cs-stratified": partial(CompressedSensing, design=designs.stratified),
    "thompson": Thompson,
    "coar": Coar,
    "co-ablation": CoAblation,
    "gradient": Gradient,
    "gradient-masked": MaskedGradient,
    "gradient-integrated": IntegratedGradient,
    "learned-gates": LearnedGates,
    "cs-fresh": FreshMasks,
    "cs-tuned": Tuned,
}
"""Every method by the name that `--method` takes."""

RESPONSES: dict[str, Response] = {
    "focus": "probability",
    "cs-fresh": "probability",
    "coar": "probability",
    "gradient": "probability",
    "gradient-masked": "probability",
    "gradient-integrated": "probability",
    "learned-gates": "margin",
}
"""What methods measure where the user does not say; those not named take the task's metric."""

GRADIENT_METHODS = ("gradient", "gradient-masked", "gradient-integrated", "learned-gates")
"""Methods that need gradients of the response."""

DEFAULT_METHOD = "focus"


def require_method(method: str) -> Callable[..., Search]:
    """Returns what makes searches of this name.

    Raises:
        UnknownName: No method has this name.
    """
    if method not in METHODS:
        raise UnknownName(
            f"method '{method}' is unknown{nearest(method, METHODS)}; use one of "
            f"{', '.join(METHODS)}"
        )
    return METHODS[method]


def require_options(method: str, options: Iterable[str]) -> None:
    """Refuses options that a method does not have.

    Raises:
        UnknownName: No method has this name.
        BadInput: The method has no such option.
    """
    make = require_method(method)
    taken = set(make.keywords) if isinstance(make, partial) else set()
    allowed = set(inspect.signature(make).parameters) - {"problem"} - taken
    for name in options:
        if name not in allowed:
            raise BadInput(
                f"method '{method}' has no option '{name}'{nearest(name, allowed)}"
                + (f"; it has {', '.join(sorted(allowed))}" if allowed else "; it has none")
            )


def measures_others(method: str) -> bool:
    """Whether a method measures the other tasks too, to tell what the task alone needs."""
    return method == "focus"


def wants_probability(method: str) -> bool:
    """Whether a method by itself measures the probability of the right answer, where it can."""
    return RESPONSES.get(method) == "probability"


def written(option: Any) -> Any:
    """An option as a record holds it: an estimator by how scikit-learn writes it."""
    return recovery_name(option) if hasattr(option, "get_params") else option


def make_search(method: str, problem: Problem, **options: Any) -> Search:
    """Makes the search called `method`.

    Raises:
        UnknownName: No method has this name.
        BadInput: The method has no such option, or the budget does not allow it.
    """
    require_options(method, options)
    return METHODS[method](problem, **options)


__all__ = [
    "DEFAULT_METHOD",
    "GRADIENT_METHODS",
    "METHODS",
    "RESPONSES",
    "CoAblation",
    "Coar",
    "CompressedSensing",
    "Focus",
    "Gradient",
    "FreshMasks",
    "Greedy",
    "IntegratedGradient",
    "LearnedGates",
    "MaskedGradient",
    "OneShot",
    "OtherTask",
    "Problem",
    "Ranking",
    "Search",
    "Thompson",
    "Tuned",
    "make_search",
    "measures_others",
    "require_method",
    "run",
    "wants_probability",
    "written",
]
