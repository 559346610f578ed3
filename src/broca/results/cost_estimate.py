"""The estimated cost of every method on a machine, which `broca plan` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from broca.results.base import ModelInfo, Result


@dataclass(frozen=True)
class MethodCost:
    """The estimated cost of a method.

    Attributes:
        method: Name of the method.
        rows: Maximum number of rows of its search.
        tokens: Number of tokens of these rows, without sharing of work.
        seconds: Time at the speed of the timed rows; shared prefixes and layers make it shorter.
        response: Response of most of its rows.
        problem: Why it cannot run with these settings; empty otherwise.
    """

    method: str
    rows: int
    tokens: int
    seconds: float
    response: str
    problem: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class CostEstimate(Result, file="plan.json", verb="broca plan"):
    """The estimated cost of all methods.

    Attributes:
        model: The model.
        task: The task.
        items: Number of `locate` items of the task.
        components: Number of components.
        timed_rows: Number of timed rows, over all responses.
        tokens_per_second: Speed in each response.
        memory_bytes: Peak memory of the device, or of the process on a CPU.
        proof_rows: Minimum number of further rows, for the verification.
        methods: The cost of every method.
    """

    kind: Literal["cost estimate"] = "cost estimate"
    model: ModelInfo
    task: str
    items: int
    components: int
    timed_rows: int
    tokens_per_second: dict[str, float]
    memory_bytes: int
    proof_rows: int
    methods: tuple[MethodCost, ...]

    def summary(self) -> tuple[str, ...]:
        """Returns the number of methods that can run, and the size of the problem."""
        possible = sum(not method.problem for method in self.methods)
        return (
            f"{possible} of {len(self.methods)} methods can search for {self.task} in "
            f"{self.model.name}: {self.components} components, {self.items} items",
            f"from {self.timed_rows} timed rows",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each method."""
        return [asdict(method) for method in self.methods]
