"""What each method would take on a machine: what `broca plan` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from broca.results.base import ModelInfo, Result


@dataclass(frozen=True)
class MethodCost:
    """What a method would take.

    Attributes:
        method: Its name.
        rows: Rows of its search, the most that it may request.
        tokens: Tokens of these rows, each row by itself.
        seconds: Time at the speed of the timed rows; sharing of prefixes and layers makes it less.
        response: What it measures most rows in.
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
    """What all methods would take.

    Attributes:
        model: The model.
        task: The task.
        items: `locate` items of the task.
        components: Number of components.
        timed_rows: Rows that were timed, in all responses together.
        tokens_per_second: Speed in each response.
        memory_bytes: Most memory that was held, by the device or else by the process.
        proof_rows: Rows that the verification measures besides, at least.
        methods: Every method.
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
        """How many methods can run, and on how much."""
        possible = sum(not method.problem for method in self.methods)
        return (
            f"{possible} of {len(self.methods)} methods can search for {self.task} in "
            f"{self.model.name}: {self.components} components, {self.items} items",
            f"from {self.timed_rows} timed rows",
        )

    def records(self) -> list[dict[str, Any]]:
        """A line for each method."""
        return [asdict(method) for method in self.methods]
