"""Small calls of the verbs that measure, which another process can make too."""

from dataclasses import replace

import torch

import broca
from broca.runs import run

FEW = broca.TaskOptions(limit=40)
NARROW = broca.EngineOptions(token_budget=256)

VERBS = {
    "localize": lambda model, journal: broca.localize(
        model, "capitals", others=["sorting"], method="cs-stratified", rows=200, items=8,
        verify=False, task_options=FEW, engine_options=NARROW, journal=journal,
    ),
    "verify": lambda model, journal: broca.verify(
        model, "sorting", "L0H1+L1H2", others=["capitals"], limit=20, engine_options=NARROW,
        scope=broca.Scope(controls=4, control_items=10, curve=2, failure_items=5), journal=journal,
    ),
    "atlas": lambda model, journal: broca.atlas(
        model, ["capitals", "sorting"], rows=400, items=8, task_options=FEW,
        engine_options=NARROW, journal=journal,
    ),
    "stress": lambda model, journal: broca.stress(
        model, heads="L0H1+L1H2", pairs=16, sets=4, journal=journal
    ),
}  # fmt: skip
"""Each verb on a few rows of `reference-small`, which it commits a few at a time."""


def measure(verb, journal):
    """Calls a verb; the result without its times."""
    torch.set_num_threads(1)
    run.NOMINAL_S = 0.0  # a commit after every batch of rows
    model = broca.load("reference-small", device="cpu")
    result = VERBS[verb](model, journal)
    if not hasattr(result, "cost"):
        return result
    return replace(result, cost=replace(result.cost, wall_s=0.0))
