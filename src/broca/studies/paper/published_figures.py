"""The paper's figures for a model, by task; None or empty for other models and tasks."""

from __future__ import annotations

from typing import Any

from broca.published import PublishedModel, published_lists, published_results

_NAMES = {"humaneval_instruct": "humaneval", "rhyme": "rhyming", "profanity": "swearing"}
"""Names of tasks in the published data that differ from lm-eval's or the package's."""

_SETS = {"gsm8k": "math", "mbpp": "code", "profanity": "swearing", "rhyme": "rhyming"}
"""The published head set of each task."""

_METHODS = {
    "greedy": "greedy", "one-shot": "one-shot", "cs-bernoulli": "csb", "cs-stratified": "css",
}  # fmt: skip
"""Names of methods in the published data."""

_KNOWLEDGE = ("wmdp_bio", "wmdp_chem", "wmdp_cyber")


class PublishedFigures:
    """What was published of a model.

    Args:
        model: The model; None if nothing was published of it.
    """

    def __init__(self, model: PublishedModel | None) -> None:
        self._tables = {} if model is None else published_results(model.name)
        lists = [] if model is None else published_lists(model.name)
        self._lists = {(listed.task, listed.method): listed.heads for listed in lists}

    def top5(self, found_on: str, measured_on: str) -> float | None:
        """Returns a score without the top five heads of a task; intact if `found_on` is empty."""
        return self._score("top5", _SETS.get(found_on, "") if found_on else "intact", measured_on)

    def knowledge(self, heads: str, measured_on: str) -> float | None:
        """Returns a score without a head such as `L0H14`, or a knowledge task's own heads."""
        return self._score("wmdp", heads or "intact", measured_on)

    def knowledge_heads(self) -> tuple[str, ...]:
        """Returns the heads that the knowledge tasks share."""
        others = ("tasks", "intact", *_KNOWLEDGE)
        return tuple(row for row in self._tables.get("wmdp", {}) if row not in others)

    def sweep(self, task: str, k: int) -> float | None:
        """Returns a score with the first k math heads ablated; `general` is a task too."""
        values = self._tables.get("k_sweep", {}).get(task, ())
        return float(values[k]) if k < len(values) else None

    def heads(self, task: str, method: str) -> tuple[str, ...]:
        """Returns the list of a task."""
        return self._lists.get((_NAMES.get(task, task), _METHODS.get(method, "")), ())

    def universal(self) -> tuple[str, ...]:
        """Returns the universal heads."""
        return self.heads("universal", "cs-stratified")

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Returns all lists of the paper's own method, without universal heads."""
        return {
            task: heads
            for (task, method), heads in self._lists.items()
            if method == "css" and task != "universal"
        }

    def evaluations(self, method: str) -> str:
        """Returns the masks of the search, such as `100 to 400`; empty if unknown."""
        value: Any = self._tables.get("evaluations", {}).get(_METHODS.get(method, ""), "")
        return " to ".join(map(str, value)) if isinstance(value, list) else str(value)

    def _score(self, name: str, row: str, task: str) -> float | None:
        table, task = self._tables.get(name, {}), _NAMES.get(task, task)
        if row not in table or task not in table["tasks"]:
            return None
        return float(table[row][table["tasks"].index(task)])
