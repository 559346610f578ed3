"""Arguments of a small run of every neuron verb."""

from broca.options import EngineOptions

FEW = {"items": 6, "steps": 4, "engine_options": EngineOptions(token_budget=256)}
"""Few items and steps, in small batches."""
RUNS = {
    "locate": {"task": "sorting", "sigma": 3.0},
    "fidelity": {"task": "capitals", "contents": 3, "wordings": 2, "count": 4},
    "reliability": {"task": "sorting", "others": "capitals", "count": 4, "draws": 1},
    "decouple": {"count": 4},
    "overlap": {"tasks": "sorting,capitals", "count": 4},
    "erase": {
        "task": "sorting", "others": "capitals", "report_items": 8, "draws": 2, "count": 4,
        "methods": "cnl,gradient",
    },
    "enhance": {
        "task": "sorting", "report_items": 8, "draws": 1, "count": 4, "lr": 1e-3, "epochs": 2,
    },
    "cross": {
        "tasks": "sorting,capitals", "action": "tune", "report_items": 8, "draws": 1, "count": 4,
        "lr": 1e-3, "epochs": 1,
    },
}  # fmt: skip


def arguments_of(verb):
    """Returns the arguments of a small run of a verb."""
    common = dict(FEW)
    if verb == "fidelity":
        common.pop("items")
    return {**common, **RUNS[verb]}
