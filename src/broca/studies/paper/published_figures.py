"""The paper's figures for a model, by task; none for other models and tasks."""

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


def top5(model: PublishedModel | None, found_on: str, measured_on: str) -> float | None:
    """Returns a score with the top five heads of a task ablated; intact if `found_on` is empty."""
    row = _SETS.get(found_on, "") if found_on else "intact"
    return _score(_table(model, "top5"), row, measured_on)


def knowledge(model: PublishedModel | None, heads: str, measured_on: str) -> float | None:
    """Returns a score without a head such as `L0H14`, or without a knowledge task's own heads."""
    return _score(_table(model, "wmdp"), heads or "intact", measured_on)


def knowledge_heads(model: PublishedModel | None) -> tuple[str, ...]:
    """Returns the published heads that the knowledge tasks share."""
    others = ("tasks", "intact", *_KNOWLEDGE)
    return tuple(row for row in _table(model, "wmdp") if row not in others)


def sweep(model: PublishedModel | None, task: str, k: int) -> float | None:
    """Returns a score with the first k math heads ablated; `general` is a task too."""
    values = _table(model, "k_sweep").get(task, ())
    return float(values[k]) if k < len(values) else None


def heads(model: PublishedModel | None, task: str, method: str) -> tuple[str, ...]:
    """Returns the published list of a task."""
    key = (model and model.name, _NAMES.get(task, task), _METHODS.get(method))
    lists = {(listed.model, listed.task, listed.method): listed for listed in published_lists()}
    return lists[key].heads if key in lists else ()


def universal(model: PublishedModel | None) -> tuple[str, ...]:
    """Returns the published universal heads."""
    return heads(model, "universal", "cs-stratified")


def lists(model: PublishedModel | None) -> dict[str, tuple[str, ...]]:
    """Returns all published lists of the paper's own method, without universal heads."""
    return {
        listed.task: listed.heads
        for listed in published_lists()
        if model is not None
        and (listed.model, listed.method) == (model.name, "css")
        and listed.task != "universal"
    }


def evaluations(model: PublishedModel | None, method: str) -> str:
    """Returns the masks of the published search, such as `100 to 400`; empty if unknown."""
    value = _table(model, "evaluations").get(_METHODS.get(method, ""), "")
    return " to ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(model: PublishedModel | None, name: str) -> dict[str, Any]:
    if model is None:
        return {}
    table: dict[str, Any] = published_results(model.name).get(name, {})
    return table


def _score(table: dict[str, Any], row: str, task: str) -> float | None:
    name = _NAMES.get(task, task)
    if row not in table or name not in table["tasks"]:
        return None
    return float(table[row][table["tasks"].index(name)])
