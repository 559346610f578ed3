"""Ground truth: planted sets, and the effect of ablating every component alone."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from broca import designs
from broca.errors import TaskUnusable
from broca.measurement import Plan, Response
from broca.models import SHIPPED_MODELS, shipped_model_folder
from broca.results import Localization
from broca.runs import Run

LEARNED = 0.5
"""Minimum intact score of a capability that a planted model has learned; below it, planted heads
matter little and are not a ground truth (the model's card)."""

_SETS = "planted_heads.json"


def planted_sets(model: str) -> dict[str, frozenset[str]]:
    """Returns the planted heads of a shipped model by capability; empty if none were planted."""
    if model not in SHIPPED_MODELS:
        return {}
    path = shipped_model_folder(model) / _SETS
    if not path.is_file():
        return {}
    sets = json.loads(path.read_text(encoding="utf-8"))
    return {capability: frozenset(heads) for capability, heads in sets.items()}


def planted_recall(
    model: str, capability: str, selected: Sequence[str], baseline: float
) -> tuple[float, int] | None:
    """Compares a selection with the planted set of its capability.

    Args:
        model: Name of the model.
        capability: Capability that the task measures.
        selected: Names of the selected heads.
        baseline: Score of the task on the intact model.

    Returns:
        The share of the planted heads that were selected, and the number of other selected heads;
        None if nothing is planted, or the model has not learned the task.
    """
    planted = planted_sets(model).get(capability)
    if not planted or baseline < LEARNED:
        return None
    return len(planted & set(selected)) / len(planted), len(set(selected) - planted)


@dataclass(frozen=True)
class SingleEffects:
    """The effect of ablating each component alone, measured on many items of a task.

    Attributes:
        items: Number of items.
        effects: Change of the mean response by component, in the order of the columns.
    """

    items: int
    effects: dict[str, float]

    def worst(self, k: int) -> frozenset[str]:
        """Returns the k components with the most harmful single ablations; fewer if fewer harm."""
        names = sorted(self.effects, key=lambda name: self.effects[name])[:k]
        return frozenset(name for name in names if self.effects[name] < 0)

    def recall(self, selected: Sequence[str], k: int) -> float | None:
        """Returns the share of the k worst components that are selected; None if none harms."""
        worst = self.worst(k)
        return len(worst & set(selected)) / len(worst) if worst else None

    def held(self, result: Localization) -> tuple[int, int]:
        """Returns how many intervals of a ranking contain the effect, and how many there are."""
        pairs = [
            (line.ci, self.effects[line.name]) for line in result.ranking if line.ci is not None
        ]
        # effects have six digits
        return (
            sum(round(low, 6) <= effect <= round(high, 6) for (low, high), effect in pairs),
            len(pairs),
        )


def single_effects(run: Run, task: str, response: Response, *, items: int) -> SingleEffects | None:
    """Ablates every component alone on a task; rows in the journal are not measured again.

    Args:
        run: A run on all items of the task.
        task: The task.
        response: Response of the rows.
        items: Maximum number of items, drawn from all items with this response regardless of
            splits.

    Returns:
        The effects; None if no item of the task has this response.
    """
    places = run.tasks.places["report"][task]
    if response != "accuracy":
        try:
            places = run.referenced(response, {task: places}, otherwise=None).places[task]
        except TaskUnusable:
            return None
    rng = np.random.default_rng([0xEC4A, zlib.crc32(task.encode())])
    drawn = np.sort(rng.permutation(places)[:items])
    count = len(run.model.components)
    masks = np.vstack([designs.intact(count), designs.singles(count)])
    plan = replace(Plan.crossed(masks, drawn), response=response)
    means = run.measure(plan).mask_means()
    effects = [round(float(effect), 6) for effect in means[1:] - means[0]]
    return SingleEffects(len(drawn), dict(zip(run.model.components.names, effects, strict=True)))
