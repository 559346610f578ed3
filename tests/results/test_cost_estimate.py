"""The estimated cost of methods."""

from dataclasses import fields

from broca.results.base import ModelInfo
from broca.results.runs import CostEstimate, MethodCost

MODEL = ModelInfo("toy", "abc")


def make_estimate():
    """Returns an estimate of two methods, one of which can run."""
    methods = (
        MethodCost("one-shot", 970, 9700, 4.0, "accuracy"),
        MethodCost("focus", 0, 0, 0.0, "", "too few"),
    )
    return CostEstimate(
        model=MODEL, task="adding", items=10, components=96, timed_rows=64,
        tokens_per_second={"accuracy": 100.0}, memory_bytes=1, proof_rows=600, methods=methods,
    )  # fmt: skip


def test_methods_that_cannot_run_are_not_counted():
    """The summary has the number of methods that can run."""
    first, second = make_estimate().summary()
    assert first == "1 of 2 methods can search for adding in toy: 96 components, 10 items"
    assert second == "from 64 timed rows"


def test_a_line_for_each_method_with_its_problem():
    """A record has all fields of `MethodCost`."""
    lines = make_estimate().records()
    assert [line["method"] for line in lines] == ["one-shot", "focus"]
    assert [line["problem"] for line in lines] == ["", "too few"]
    assert set(lines[0]) == {field.name for field in fields(MethodCost)}
