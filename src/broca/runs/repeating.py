"""Compares a repetition of a run with the run."""

from __future__ import annotations

import numpy as np

from broca.results.files import plain
from broca.results.localization import Localization, RankedComponent
from broca.results.runs import Repetition

TOLERANCE = {"float32": 1e-6, "bfloat16": 1e-2, "float16": 1e-2}
"""Largest allowed difference of an effect, relative to the largest effect, by dtype."""


def compare_rankings(
    before: Localization, ranking: tuple[RankedComponent, ...], selected: tuple[str, ...]
) -> Repetition:
    """Grades a repeated ranking against the ranking of a result."""
    if plain(before.ranking) == plain(ranking) and before.selected == selected:
        return Repetition("identical")
    old = {component.name: component.effect for component in before.ranking}
    new = {component.name: component.effect for component in ranking}
    if set(old) != set(new):
        return Repetition("different", ("the components are not the same",))
    largest = max((abs(value) for value in old.values()), default=0.0) or 1.0
    gap = max(abs(old[name] - new[name]) for name in old) / largest
    details = [f"the largest difference of effects is {gap:.2g} of the largest effect"]
    if before.selected != selected:
        details.append(f"selected {', '.join(selected)} instead of {', '.join(before.selected)}")
        return Repetition("different", tuple(details))
    moved = sum(a.name != b.name for a, b in zip(before.ranking, ranking, strict=True))
    if moved:
        details.append(f"{moved} of {len(ranking)} places of the ranking changed")
    close = gap <= TOLERANCE.get(before.model.dtype, 1e-2)
    return Repetition("equal within the tolerance" if close else "same selection", tuple(details))


def compare_results(before: Localization, after: Localization) -> Repetition:
    """Grades a repetition from scratch: the ranking, then the scores of the verification."""
    ranking = compare_rankings(before, after.ranking, after.selected)
    gaps = [
        f"{stage} of {name} is {new.get(name, np.nan):.6g} instead of {score:.6g}"
        for stage, old, new in (
            ("the intact score", before.baseline, after.baseline),
            ("the ablated score", before.verification.after, after.verification.after),
        )
        for name, score in old.items()
        if not np.isclose(score, new.get(name, np.nan), rtol=1e-6, atol=1e-9)
    ]
    if before.model.fingerprint != after.model.fingerprint:
        gaps.insert(0, "the weights of the model changed")
    if gaps:
        grade = "different" if ranking.grade == "different" else "same selection"
        return Repetition(grade, (*ranking.details, *gaps))
    return ranking
