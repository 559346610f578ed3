"""Records of methods: order, help, options and checks before anything is measured."""

from dataclasses import replace

import numpy as np
import pytest

from broca.errors import BadInput
from broca.searches import METHODS, Problem
from broca.searches.records import Method

PROBLEM = Problem(
    30, np.arange(20), 5, 10_000, 0, confirm=np.arange(20, 30), continuous=True, differentiable=True
)


def test_menu_has_a_fixed_order():
    """The order is that of the README, and a method without a place comes after these."""
    assert list(METHODS)[:15] == [
        "pooled", "focus", "one-shot", "greedy", "cs-bernoulli", "cs-stratified", "thompson",
        "coar", "co-ablation", "gradient", "gradient-masked", "gradient-integrated",
        "learned-gates", "cs-fresh", "cs-tuned",
    ]  # fmt: skip
    assert max(METHODS[name].order for name in list(METHODS)[:15]) < Method.order


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_help_is_one_sentence(method):
    """The sentence has what the method measures and what it answers."""
    assert method.help[0].isupper() or method.help[0] == "`"
    assert method.help.endswith(f": {method.answers}.")
    assert "\n" not in method.help


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_what_require_lets_through_can_be_searched(method):
    """A problem that `require` accepts has a first plan, and one with too few rows is refused."""
    strategy = method.require(PROBLEM)
    assert method.strategy() == strategy
    assert method.search(PROBLEM).ask() is not None
    with pytest.raises(BadInput, match="too few"):
        method.require(replace(PROBLEM, rows=10))


def test_options_are_those_of_the_strategy():
    """Options have their defaults, and values that the record sets are not options."""
    assert METHODS["one-shot"].options == {"contrast": 0.0}
    assert METHODS["gradient-masked"].options == {"low": 0.05, "high": 0.15, "contrast": 0.0}
    assert set(METHODS["cs-stratified"].options) == {
        "sparsity", "recovery", "intercept", "resamples", "contrast",
    }  # fmt: skip


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_options_that_a_record_names_exist(method):
    """The options for estimates and for tuning by `cs-tuned` are options of the method."""
    assert set(method.counting) <= set(method.options)
    method.require_options(method.counting)
    METHODS["cs-tuned"].strategy(method.tuning or {})


def test_values_are_refused_without_a_problem():
    """Values are checked without a problem, before a model is loaded."""
    with pytest.raises(BadInput, match="contrast must be 0 or more"):
        METHODS["focus"].strategy({"contrast": -1})
    with pytest.raises(BadInput, match="it has contrast"):
        METHODS["greedy"].strategy({"recovery": "lasso"})


def test_only_methods_with_gradients_need_them():
    """A response without gradients is refused by gradient methods and by no other."""
    without = replace(PROBLEM, differentiable=False, rows=100_000)
    for name, method in METHODS.items():
        if name.startswith("gradient") or name == "learned-gates":
            with pytest.raises(BadInput, match=f"method '{name}' needs gradients"):
                method.require(without)
        else:
            method.require(without)
