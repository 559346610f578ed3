"""Small calls of the verbs that measure."""

import broca

FEW = broca.TaskOptions(limit=40)
NARROW = broca.EngineOptions(token_budget=256)

VERBS = {
    "localize": lambda model, journal, **more: broca.localize(
        model, "capitals", others=["sorting"], method="cs-stratified", rows=200, items=8,
        verify=False, task_options=FEW, engine_options=NARROW, journal=journal, **more,
    ),
    "verify": lambda model, journal, **more: broca.verify(
        model, "sorting", "L0H1+L1H2", others=["capitals"], limit=20, engine_options=NARROW,
        scope=broca.Scope(controls=4, control_items=10, curve=2, failure_items=5),
        journal=journal, **more,
    ),
    "atlas": lambda model, journal, **more: broca.atlas(
        model, ["capitals", "sorting"], rows=400, items=8, task_options=FEW,
        engine_options=NARROW, journal=journal, **more,
    ),
    "stress": lambda model, journal, **more: broca.stress(
        model, heads="L0H1+L1H2", pairs=16, sets=4, journal=journal, **more
    ),
    "compare": lambda model, journal, **more: broca.compare(
        model, model, tasks="capitals", heads="L0H1+L1H2", rows=120, items=12, limit=20,
        engine_options=NARROW, journal=journal, **more,
    ),
    "export": lambda model, journal, **more: broca.export(
        model, journal.parent / "export", heads="L0H1+L1H2", kind="heads", check=True,
        task="capitals", task_options=FEW, engine_options=NARROW, journal=journal, **more,
    ),
}  # fmt: skip
"""A call of each verb that measures few rows of `reference-small` in small batches."""
