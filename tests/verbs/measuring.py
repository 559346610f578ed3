"""Small calls of the verbs that measure."""

from dataclasses import replace

from claims import claim_about

import broca

FEW = broca.TaskOptions(limit=40)
NARROW = broca.EngineOptions(token_budget=256)

VERBS = {
    "localize": lambda model, journal, _: broca.localize(
        model, "capitals", others=["sorting"], method="one-shot", rows=400, items=8,
        verify=False, alternatives=1, task_options=FEW, engine_options=NARROW, journal=journal,
    ),
    "verify": lambda model, journal, _: broca.verify(
        model, "sorting", "L0H1+L1H2", others=["capitals"], limit=20, engine_options=NARROW,
        scope=broca.Scope(controls=4, control_items=10, failure_items=5),
        enough=True, journal=journal,
    ),
    "replicate": lambda model, journal, _: broca.replicate(
        claim_about(model, "capitals", ["L0H1", "L1H2"]), model=model, seeds=1, rows=1500,
        wordings="capitals_line", engine_options=NARROW, journal=journal,
    ),
    "atlas": lambda model, journal, _: broca.atlas(
        model, ["capitals", "sorting"], rows=400, items=8, response="accuracy",
        task_options=FEW, engine_options=NARROW, journal=journal,
    ),
    "stress": lambda model, journal, _: broca.stress(
        model, heads="L0H1+L1H2", pairs=16, sets=4, engine_options=NARROW, journal=journal
    ),
    "compare": lambda model, journal, _: broca.compare(
        model, model, tasks="capitals", heads="L0H1+L1H2", rows=120, items=12, limit=20,
        engine_options=NARROW, journal=journal,
    ),
    "export": lambda model, journal, folder: broca.export(
        model, folder / "export", heads="L0H1+L1H2", kind="heads", check=True, task="capitals",
        task_options=FEW, engine_options=NARROW, journal=journal,
    ),
    "reproduce": lambda model, journal, _: broca.reproduce(
        "table2", model, tasks="capitals,sorting", rows=200, items=8, limit=8, keep_universal=True,
        engine_options=NARROW, journal=journal,
    )[0],
}  # fmt: skip
"""A call of each verb that measures few rows in small batches, with a folder for its files."""


def untimed(result):
    """Returns a result without its times, and without what other results have measured before."""
    if hasattr(result, "cost"):
        return replace(result, cost=replace(result.cost, wall_s=0.0, tokens=0, measured=0))
    return result
