"""`localize`: finds the components that a task needs, and proves them on held-out items."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from broca.errors import BadInput, TooFewRows
from broca.options import LocalizeOptions, SearchOptions, verb
from broca.results.base import AblationInfo
from broca.results.claim import CLAIMED
from broca.results.localization import Cost, Localization, SearchInfo
from broca.results.sufficiency import Alternative, Backup
from broca.results.verification import Verification
from broca.runs import search
from broca.runs.alternatives import ITEMS, PAIRED_ROWS, alone, alternatives, places_alone, tested
from broca.runs.run import Run, model_info
from broca.runs.session import ablation_of, open_run
from broca.runs.speed import rows_within
from broca.runs.task_sets import TaskSet, chance_notes
from broca.searches import Ranking
from broca.searches.problem import require_selection
from broca.verification import Scope, fitting, plain_verification

_FEWEST = 8
"""Minimum number of these items, by default."""

_LEAST, _MOST = 3000, 8000
"""Range of the rows of a verification after a search without `rows`."""


@verb(LocalizeOptions)
def localize(options: LocalizeOptions) -> Localization:
    """Finds the components that a task needs and proves them on held-out items.

    Returns:
        The result; `save` writes `result.json` and `report.html`.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    seed, budget = options.seed, options.search_options
    method = search.method_of(budget)
    ablation_of(options.run_options.ablation_options, seed)
    with open_run(
        options.model, options.run_options, task=options.task,
        others=[options.others, options.same_skill],
    ) as opened:  # fmt: skip
        components = opened.model.components
        require_selection(budget.k, len(components), opened.model.kinds)
        started = time.perf_counter()
        run, budget, proof = _bounded(opened, options, method)
        tasks, stages = run.tasks, run.stages
        rows = search.search_rows(run.model, tasks, method, budget)
        what = "verification" if options.verify else "scores on report items"
        tests, more = None, 0
        if options.alternatives:
            tests = tested(run, options)
            each = rows + 2 * sum(map(len, tests[1].values()))
            more = 2 * options.alternatives * each + PAIRED_ROWS
        further = f"{more:,} of other sets and " * bool(more)
        items = len(tasks.bank) - len(tasks.texts)
        stages.note(
            f"at most {options.seeds * rows:,} rows of search and {further}{proof:,} of {what}, "
            f"and the intact model on {items:,} items"
        )
        stages.expect(options.seeds * rows + proof + items + more)
        digests, (baseline, _) = run.digests, run.intact()
        with stages.reserved(rows):
            able = tasks.trial().judged(baseline).others
            referenced, ranking = search.search(run, method, budget, seed=seed, able=able)
        selected = tuple(components.names[column] for column in ranking.selected)
        with stages.reserved(proof):
            verification, after = None, baseline
            if options.verify and selected:
                fewer = min(proof, max(run.search_rows, _LEAST))
                scope, _ = fitting(tasks.trial(), Scope(seed=seed), fewer, members=len(selected))
                verification = run.examiner(scope).examine(
                    selected, report=stages.enter, drops_idle=True
                )
                selected = verification.heads
                left = min(options.search_options.rows or 0, proof + (budget.rows or 0))
                verification = _with_enough(run, verification, scope, left, ranking)
            elif selected:
                after = run.scores(ranking.selected)
        again = range(seed + 1, seed + options.seeds)
        searching = replace(options, search_options=budget)
        found: tuple[tuple[Alternative, ...], tuple[Backup, ...]] = ((), ())
        counted = [run]
        if tests is not None and selected:
            columns = components.columns(selected)
            found = alternatives(run, *tests, searching, method, columns, baseline)
            counted.append(tests[0])
        repeats = [
            search.repeat(opened, searching, method, seed=number, able=able) for number in again
        ]
        if verification is None:
            verification = plain_verification(
                model_info(run.model), selected, run.ablation, tasks.trial(), baseline, after
            )
        scoring_rows = sum(one.scoring_rows for one in counted)
        measured, tokens = map(sum, zip(*(one.finish() for one in counted), strict=True))
        return Localization(
            model=model_info(run.model), task=tasks.task,
            others=tasks.others, same_skill=tasks.same_skill,
            search=SearchInfo(method, ranking.options, seed, run.search_response, budget.items),
            cost=Cost(
                run.search_rows, scoring_rows, tokens, round(time.perf_counter() - started, 3),
                measured,
            ),
            baseline=baseline,
            ranking=ranking.lines(components),
            repeats=tuple(repeats),
            off_target_effects={}
            if ranking.others is None
            else {
                components.names[column]: float(ranking.others[column]) for column in ranking.order
            },
            shared=tuple(components.names[column] for column in ranking.universal),
            selected=selected, abstained=not selected, reason=ranking.reason,
            verification=replace(verification, rows=scoring_rows, documents=tasks.documents),
            response=referenced.response,
            components=run.model.kinds,
            ablation=AblationInfo(run.ablation.kind, run.ablation.scale),
            task_options=run.options.task_options.to_dict(),
            notes=(
                *_notes(tasks, baseline), *referenced.notes,
                *_groups(components.names, ranking),
            ),
            answer=ranking.answer, additivity=ranking.additivity,
            alternatives=found[0], backups=found[1], digests=digests,
            wordings=opened.catalog.wordings_of(tasks.task),
        )  # fmt: skip


def _bounded(opened: Run, options: LocalizeOptions, method: str) -> tuple[Run, SearchOptions, int]:
    """Divides `rows` and `max_minutes` between search and verification.

    Half is for the verification; without either, it may take as many rows as the search. A search
    that is not verified has all `rows`, and the scores of the report items are beside them.

    Returns:
        The run of the first search, the budget of every search, and the largest number of rows that
        are not rows of a search.

    Raises:
        BadInput: The rows that remain do not suffice for the method.
    """
    given, seed = options.search_options, options.seed
    run = search.searching_run(opened, options, method, seed=seed, noted=False)
    usual, rows = search.search_rows(run.model, run.tasks, method, given), given.rows
    minutes, bounded = "", rows is not None and options.verify
    if given.max_minutes is not None:
        places = search.measured_places(method, run.tasks, given)
        in_time = rows_within(run, 60 * given.max_minutes, places)
        if in_time < (rows or 2 * usual):
            minutes = f"`max_minutes` {given.max_minutes:g} allow about {in_time:,} rows here: "
            rows, bounded = in_time, True
    share = min(_MOST, max(usual, _LEAST)) if rows is None else rows // 2
    items = min(ITEMS, max(_FEWEST, share // (30 if options.verify else 8 if bounded else 2)))
    if options.report_items is not None:
        items = min(options.report_items, items if bounded else options.report_items)
    run = search.searching_run(opened, replace(options, report_items=items), method, seed=seed)
    trial = run.tasks.trial()
    proof = 2 * sum(map(len, trial.places.values()))
    if options.verify:
        _, proof = fitting(trial, Scope(), share, members=given.k)
    left = rows - proof if bounded and rows is not None else rows
    budget = replace(given, rows=left if left is None else max(1, left), max_minutes=None)
    try:
        search.search_rows(run.model, run.tasks, method, budget)
    except TooFewRows as error:
        if not bounded:
            raise
        enough = f"{2 * error.fewest:,} `rows`"  # of minutes a tenth more, as they are rounded
        if minutes and given.max_minutes is not None:
            enough = f"{2.2 * error.fewest / (rows or 1) * given.max_minutes:.2g} minutes"
        raise BadInput(
            f"{minutes}{proof:,} of {rows:,} rows are for other measurements than the search, "
            f"which needs {error.fewest:,}: {enough} are enough"
        ) from None
    return run, budget, proof


def _with_enough(
    run: Run, verification: Verification, scope: Scope, rows: int, ranking: Ranking
) -> Verification:
    """Adds what a set that can be claimed does alone, if some of all `rows` are left for that."""
    if verification.verdict is None or verification.verdict.label not in CLAIMED:
        return verification
    left = rows - run.search_rows - run.scoring_rows
    places, _ = places_alone(run, verification.heads, rows=left)
    if places is None:
        return verification
    names = [run.model.components.names[column] for column in ranking.order]
    found = alone(run, verification, scope, places=places, ranking=names, peers=False)
    return replace(verification, enough=found)


def _notes(tasks: TaskSet, baseline: Mapping[str, float]) -> tuple[str, ...]:
    """Notes on the tasks for the reader."""
    notes = list(tasks.notes)
    capability = tasks.benchmarks[tasks.task].capability
    for name, benchmark in tasks.benchmarks.items():
        notes += tasks.notes_of(name)
        if name != tasks.task and benchmark.capability == capability:
            notes.append(
                f"{name} asks for the same capability ({capability}) as {tasks.task}: what it "
                "loses does not count against the set"
            )
    return (*notes, *chance_notes(tasks, baseline))


def _groups(names: Sequence[str], ranking: Ranking) -> tuple[str, ...]:
    """The method's notes, and its groups of components."""
    groups = (
        f"{name}, as the method calls them: "
        + (", ".join(names[column] for column in columns) or "none")
        for name, columns in ranking.groups.items()
    )
    return (*ranking.notes, *groups)
