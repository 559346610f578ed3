"""Repeats a finished run: from its journal alone, or from scratch, and compares."""

from __future__ import annotations

import numpy as np

from broca import searches
from broca.components import Component, ComponentSet
from broca.errors import NotInJournal
from broca.journal import Journal, Replay
from broca.journal.encoding import decoded
from broca.journal.reading import RunRecord, find_run
from broca.results.codec import plain
from broca.results.localization import Localization, RankedComponent, ranked
from broca.results.repetition import Repetition
from broca.runs.folder import RunFolder
from broca.searches import Problem, Ranking

TOLERANCE = {"float32": 1e-6, "bfloat16": 1e-2, "float16": 1e-2}
"""How far an effect may lie from the first run's, relative to the largest effect, by dtype."""


def ranking_from_journal(journal: Journal, run: RunRecord) -> Ranking:
    """Repeats a run's search with the responses that its journal holds; no model is loaded.

    Raises:
        NotInJournal: The run was cut short.
    """
    if not run.search:
        raise NotInJournal(
            f"run {run.id} of journal '{journal.name}' ended before its search began: give its "
            "command again"
        )
    record = run.search
    problem = Problem.restored(decoded(record["problem"]))
    search = searches.make_search(record["method"], problem, **record["options"])
    return searches.run(search, Replay(journal, run.id, components=run.components).run)


def rerun_from_journal(folder: RunFolder) -> Repetition:
    """Repeats the search of an out folder from its journal and compares it with `result.json`.

    Raises:
        BrocaError: The folder or the journal lacks something.
    """
    before = Localization.read(folder.path)
    with Journal(folder.journal, read_only=True) as journal:
        run = find_run(journal, folder.record["digests"].get("run"))
        ranking = ranking_from_journal(journal, run)
    components = ComponentSet(tuple(Component.parse(name) for name in run.components))
    again = ranked(components, ranking.effects, ranking.order, **ranking.details)
    selected = tuple(components.names[column] for column in ranking.selected)
    return compare_rankings(before, again, selected)


def compare_rankings(
    before: Localization, again: tuple[RankedComponent, ...], selected: tuple[str, ...]
) -> Repetition:
    """Grades a ranking against that of a result, digit by digit first."""
    if plain(before.ranking) == plain(again) and before.selected == selected:
        return Repetition("identical")
    old = {one.name: one.effect for one in before.ranking}
    new = {one.name: one.effect for one in again}
    if set(old) != set(new):
        return Repetition("different", ("the components are not the same",))
    largest = max((abs(value) for value in old.values()), default=0.0) or 1.0
    gap = max(abs(old[name] - new[name]) for name in old) / largest
    details = [f"the largest difference of effects is {gap:.2g} of the largest effect"]
    if before.selected != selected:
        details.append(f"selected {', '.join(selected)} instead of {', '.join(before.selected)}")
        return Repetition("different", tuple(details))
    moved = sum(a.name != b.name for a, b in zip(before.ranking, again, strict=True))
    if moved:
        details.append(f"{moved} of {len(again)} places of the ranking changed")
    close = gap <= TOLERANCE.get(before.model.dtype, 1e-2)
    return Repetition("equal within the tolerance" if close else "same selection", tuple(details))


def compare_results(before: Localization, after: Localization) -> Repetition:
    """Grades a repetition from scratch: the ranking, then the scores of the proof."""
    ranking = compare_rankings(before, after.ranking, after.selected)
    details = list(ranking.details)
    gaps = [
        f"{stage} of {name} is {there[name]:.6g} instead of {here[name]:.6g}"
        for stage, here, there in (
            ("the intact score", before.baseline, after.baseline),
            ("the ablated score", before.verification.after, after.verification.after),
        )
        for name in here
        if not np.isclose(here[name], there.get(name, np.nan), rtol=1e-6, atol=1e-9)
    ]
    if before.model.fingerprint != after.model.fingerprint:
        gaps.insert(0, "the weights of the model changed")
    if gaps:
        grade = "different" if ranking.grade == "different" else "same selection"
        return Repetition(grade, (*details, *gaps))
    return ranking
