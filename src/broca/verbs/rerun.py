"""`rerun`: repeats a finished run, from its journal or from scratch, and compares."""

from dataclasses import replace

import numpy as np

from broca.components import Component
from broca.errors import BadInput
from broca.options import RerunOptions, verb
from broca.results.files import plain
from broca.results.localization import Localization, RankedComponent
from broca.results.runs import Repetition
from broca.runs.folder import options_of_run, with_recorded
from broca.runs.replay import localized_in, ranking_from_journal
from broca.store import Journal, copy_vectors, find_run

TOLERANCE = {"float32": 1e-6, "bfloat16": 1e-2, "float16": 1e-2}
"""Largest allowed difference of an effect, relative to the largest effect, by dtype."""


@verb(RerunOptions)
def rerun(options: RerunOptions) -> Repetition:
    """Repeats the search of a finished run and compares the result with the run's.

    Returns:
        The grade: `identical`, `equal within the tolerance` or `different`; and the differences.

    Raises:
        BrocaError: The folder or its journal lacks a file or a row, or `journal` is the run's.
    """
    run_folder = localized_in(options.folder)
    before = Localization.read(options.folder)
    if options.from_scratch:
        # they import torch, which the journal does not need
        from broca.runs.session import open_workspace
        from broca.runs.speed import TIMING
        from broca.verbs.localize import localize

        given = options_of_run(options.folder, options.run_options, with_journal=False)
        again, asked = run_folder.options, given.task_options
        day = asked.chat_template_date or before.task_options.get("chat_template_date")
        if not again.task.strip().endswith((".yaml", ".yml")):  # these have a name of their own
            again = replace(again, task=before.task)  # its path is its name in results
        recorded = again.run_options
        run_options = replace(
            given,
            task_options=replace(asked, chat_template_date=day),
            ablation_options=recorded.ablation_options,
            engine_options=with_recorded(given.engine_options, recorded.engine_options),
            executor_options=with_recorded(given.executor_options, recorded.executor_options),
        )
        with open_workspace(run_options.journal_options, run_options.executor_options) as space:
            path, own = space.path, run_folder.journal
            if path is not None and path.resolve() == own.resolve():
                raise BadInput(f"`journal` '{path}' holds the rows of this run: name another file")
            if again.search_options.max_minutes is not None:
                with Journal(own, read_only=True) as journal:
                    copy_vectors(journal, space.journal, role=TIMING)
            settings = replace(again, run_options=run_options)
            return compare_results(before, localize(settings=settings, journal=space))
    if replace(options.run_options, on_progress=None) != RerunOptions(options.folder).run_options:
        raise BadInput("the journal alone is read: leave other options out, or add `from_scratch`")
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record.digests.get("run"))
        ranking = ranking_from_journal(journal, run)
        names = journal.names(journal.line("runs", run.id).components)
    components = [Component.parse(name) for name in names]
    selected = [names[column] for column in ranking.selected]
    kept = tuple(name for name in selected if name not in before.verification.dropped)
    return compare_rankings(before, ranking.lines(components), kept)


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
    return Repetition("equal within the tolerance" if close else "different", tuple(details))


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
        return Repetition("different", (*ranking.details, *gaps))
    return ranking
