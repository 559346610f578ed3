"""Arguments of a small run of every neuron verb."""

from broca.options import EngineOptions

FEW = {"items": 6, "steps": 4, "engine_options": EngineOptions(token_budget=256)}
"""Few items and steps, in small batches."""
RUNS = {
    "locate": {"task": "sorting", "sigma": 3.0},
    "erase": {
        "task": "sorting", "others": "capitals", "report_items": 8, "draws": 2, "count": 4,
        "methods": "cnl,gradient",
    },
}  # fmt: skip


def arguments_of(verb):
    """Returns the arguments of a small run of a verb."""
    return {**FEW, **RUNS[verb]}
