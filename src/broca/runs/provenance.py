"""The parts of results that describe the model and its verification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from broca.engine import Ablation
from broca.models import GatedModel
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.verification import Crossing, Documents, TaskDrop, Verification
from broca.verification import Examination, Trial
from broca.verification.drops import MeasuredDrop, below_chance


def model_info(model: GatedModel) -> ModelInfo:
    """Returns the description of a model in results."""
    return ModelInfo(
        name=model.name, fingerprint=model.fingerprint, architecture=model.architecture,
        layers=model.structure.layers, heads=model.heads, kv_heads=model.kv_heads,
        dtype=model.dtype, revision=model.revision, remote_code=model.remote_code,
        adapter=model.adapter,
    )  # fmt: skip


def crossings_of(heads: Sequence[str], task: str, drops: Iterable[MeasuredDrop]) -> list[Crossing]:
    """Returns what a set that was claimed for a task costs the tasks of the same capability.

    Args:
        heads: Names of the components.
        task: The task that they were claimed for.
        drops: Drops of all tasks.
    """
    return [
        Crossing(task, drop.task, tuple(heads), drop.drop, drop.p)
        for drop in drops
        if drop.role == "same_skill"
    ]


def verification_of(
    model: ModelInfo,
    heads: Sequence[str],
    how: Ablation,
    trial: Trial,
    before: Mapping[str, float],
    after: Mapping[str, float],
    *,
    examination: Examination | None = None,
    level: float = 0.05,
    rows: int,
    crossings: Sequence[Crossing] = (),
    notes: Sequence[str] = (),
    documents: Sequence[Documents] = (),
) -> Verification:
    """Makes the verification of a set from its measurements.

    Args:
        model: The model.
        heads: The set; empty where nothing was selected.
        how: The ablation; its seed is the seed of the verification.
        trial: The tasks and their report items.
        before: Score of every task on the intact model.
        after: Score of every task with the set ablated.
        examination: Statistics, controls and the verdict; None where none were requested.
        level: Level of the tests and intervals.
        rows: Rows that were measured on the report items.
        crossings: Drops of tasks of the same capability without each other's components.
        notes: Notes for the reader.
        documents: The documents of each part of the items.
    """
    losses = {name: trial.benchmarks[name].loss(before[name], after[name]) for name in trial.names}
    off_target = float(np.mean([losses[name] for name in trial.others])) if trial.others else None
    drops = {
        name: TaskDrop(
            task=name,
            role=trial.role(name),
            metric=trial.benchmarks[name].metric,
            items=len(trial.places[name]),
            drop=loss,
            chance=trial.chance(name),
            below_chance=below_chance(before[name], after[name], trial.chance(name)),
        )
        for name, loss in losses.items()
    }
    statistics: dict[str, Any] = {"verdict": None}
    if examination is not None:
        drops |= {
            line.task: replace(
                drops[line.task],
                drop=line.drop.value,
                ci=_ends(line.drop),
                test=line.test,
                p=line.p,
                p_holm=line.p_holm,
            )
            for line in examination.drops
        }
        copied = ("controls", "members", "curve", "ablations", "failures", "samples", "verdict")
        statistics = {
            "off_target_ci": _ends(examination.off_target),
            "specific_ci": _ends(examination.specific),
            **{name: getattr(examination, name) for name in copied},
        }
    return Verification(
        model=model,
        task=trial.task,
        heads=tuple(heads),
        ablation=AblationInfo(how.kind, how.scale),
        seed=how.seed,
        baseline=dict(before),
        after=dict(after),
        drops=tuple(drops.values()),
        off_target_drop=off_target,
        specific_drop=losses[trial.task] - (off_target or 0.0),
        level=level,
        crossings=tuple(crossings),
        rows=rows,
        notes=tuple(notes),
        documents=tuple(documents),
        **statistics,
    )


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
