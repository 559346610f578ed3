"""Localization methods, each with its record beside it."""

from typing import Any

from broca.errors import UnknownName, require_known
from broca.options.running import DEFAULT_METHOD
from broca.plugins import Plugins
from broca.recovery import recovery_name
from broca.searches import ablations, coar, compressed, fresh, gradients, pooled
from broca.searches.atlas import FEWEST_ROWS
from broca.searches.method import Method
from broca.searches.problem import OtherTask, Problem, Ranking, Search, Strategy, run

METHODS = Plugins(
    Method, pooled.METHOD, ablations.ONE_SHOT, ablations.GREEDY, compressed.BERNOULLI,
    compressed.STRATIFIED, coar.METHOD, ablations.CO_ABLATION, gradients.INTACT, gradients.MASKED,
    gradients.INTEGRATED, gradients.LEARNED_GATES, fresh.METHOD, compressed.TUNED,
    group="broca.searches",
)  # fmt: skip
"""Every method by the name that `method` accepts."""


def require_method(method: str) -> Method:
    """Returns the record of a method.

    Raises:
        UnknownName: No method has this name.
    """
    require_known("method", method, METHODS, error=UnknownName)
    return METHODS[method]


def written(option: Any) -> Any:
    """Returns an option as plain data; an estimator becomes its scikit-learn text."""
    return recovery_name(option) if hasattr(option, "get_params") else option


__all__ = [
    "DEFAULT_METHOD", "FEWEST_ROWS", "METHODS", "Method", "OtherTask", "Problem", "Ranking",
    "Search", "Strategy", "require_method", "run", "written",
]  # fmt: skip
