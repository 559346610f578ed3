"""What a set does alone, other sets beneath it or instead of it, and members that are backups."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from broca import designs
from broca.engine.ablation import ablations_of
from broca.errors import BadInput
from broca.options import LocalizeOptions
from broca.results.sufficiency import Alternative, Backup, Sufficiency
from broca.results.verification import Verification
from broca.runs import search
from broca.runs.run import Run
from broca.runs.task_sets import claim_tasks
from broca.verification import Evidence, Scope
from broca.verification.examiner import Sets
from broca.verification.statistics import holm, paired_test
from broca.verification.sufficiency import PEER_ROWS, KeptMeasurer, sufficiency_items
from broca.verification.trial import Places

PAIRED_ROWS = 4000
"""Maximum number of rows on which pairs of members are measured."""

MEMBERS = 12
"""Maximum number of members of all sets whose pairs are measured."""

ITEMS = 300
"""Maximum number of report items of the task, and of all others together, by default."""

_TESTED = 100
"""Number of these on which a set is tested, if those of the run are fewer."""


def tested(run: Run, options: LocalizeOptions) -> tuple[Run, Places]:
    """Returns a run on report items that the rows of the claim do not bound.

    Returns:
        The run, and its items for the test of a set.
    """
    claimed = run.tasks
    tasks = claim_tasks(
        claimed.task, claimed.benchmarks, same_skill=claimed.same_skill,
        items=options.search_options.items, seed=options.seed,
        report_items=options.report_items or ITEMS,
    )  # fmt: skip
    items = max(_TESTED, len(claimed.places["report"][claimed.task]))
    settings = {**run.settings, "tests": True}  # its plans are not those of the search
    tests = run.on(tasks, settings=settings, donors=tasks.located, noted=False)
    return tests, tasks.trial().smaller(items)


def alternatives(
    run: Run,
    tests: Run,
    places: Places,
    options: LocalizeOptions,
    method: str,
    selected: Sequence[int],
    scores: Mapping[str, float],
) -> tuple[tuple[Alternative, ...], tuple[Backup, ...]]:
    """Searches again while all members so far are ablated, and among all others.

    Args:
        run: The run that found the set.
        tests: The run on the items on which pairs of members are tested.
        places: Its items on which sets are tested.
        options: The options of its localization, with the budget of every search.
        method: Name of the method.
        selected: Columns of the set.
        scores: Score of every task on the intact model.

    Returns:
        Sets in the order of their searches, and members whose costs do not add up.
    """
    trial, names = tests.tasks.trial().judged(scores), run.model.components.names
    scope, members = Scope(seed=options.seed), dict.fromkeys(selected)
    found: list[Alternative] = []
    lines: list[tuple[Sequence[int], Sequence[int]]] = []
    for how in ("beneath", "instead"):
        given = list(selected)
        for _ in range(options.alternatives):
            base = given if how == "beneath" else []
            columns: list[int] = []
            reason, rows = "nothing of the task is left", 0
            own = {trial.task: places[trial.task]}
            remaining = trial.responses(tests.measure, run.mask(base)[None], own)[trial.task][0]
            left, items = trial.score(trial.task, remaining), len(remaining)
            if len(given) == len(names):
                reason = "no other component is left"
            elif not trial.guesses(trial.task, left, items):
                try:
                    columns, reason, rows = search.alternative(
                        run, options, method, given, able=trial.others, ablated=how == "beneath"
                    )
                except BadInput as error:  # the method cannot search so few components
                    reason = str(error)
            masks = designs.of_sets([base, [*base, *columns]], len(names))
            evidence = Evidence(trial, scope, trial.responses(tests.measure, masks, places))
            (drop, _, p), (_, specific) = evidence.compared(trial.task), evidence.contrast()
            if columns and (p > scope.level or drop.value <= 0):
                reason = "on fresh items it costs nothing for certain"
            heads = tuple(names[column] for column in columns)
            found.append(Alternative(how, heads, drop, specific, p, rows, reason))
            if reason:
                break
            lines += [(tuple(given), columns)] if how == "beneath" else []
            given += columns
            members |= dict.fromkeys(columns)
    tests.stages.enter("testing what members cost with and without each other")
    return tuple(found), backups(tests, list(members)[:MEMBERS], scope, beneath=lines)


def backups(
    run: Run, columns: Sequence[int], scope: Scope, beneath: Sequence[Sets] = ()
) -> tuple[Backup, ...]:
    """Returns the members that cost significantly more where others are ablated too.

    Args:
        run: The run on the items.
        columns: The members, of which every pair is tested.
        scope: Level, resamples and seed.
        beneath: Sets of several, each with the members that were found while it was ablated.
    """
    trial, names = run.tasks.trial(), run.model.components.names
    asked = [(frozenset([one]), frozenset([other])) for one, other in combinations(columns, 2)]
    asked += [
        (frozenset(given), frozenset([column]))
        for given, found in beneath
        for column in found
        if len(given) > 1
    ]
    sets = dict.fromkeys([frozenset[int](), *(one for a, b in asked for one in (a, b, a | b))])
    row = {one: number for number, one in enumerate(sets)}
    masks, task = designs.of_sets([sorted(one) for one in sets], len(names)), trial.task
    places = {task: trial.at_most(PAIRED_ROWS // len(sets))[task]}
    responses = trial.responses(run.measure, masks, places)
    evidence, scores = Evidence(trial, scope, responses), responses[task]
    aggregate = trial.aggregation(task, scores[0])
    lost = [trial.loss(task, scores[0], after) for after in scores]
    lines, p_values = [], []
    for pair in asked:
        # of two members, the one that costs more alone, and the one that takes over
        of, head = pair if len(pair[0]) > 1 else sorted(pair, key=lambda one: -lost[row[one]])
        before, single, both = row[of], row[head], row[of | head]
        alone, beside = evidence.drop(task, single), evidence.drop(task, both, before=before)
        costs = scores[before] - scores[both], scores[0] - scores[single]
        p_values.append(paired_test(*costs, seed=scope.seed, aggregate=aggregate)[1])
        member, leaders = ("+".join(names[one] for one in sorted(part)) for part in (head, of))
        lines.append((member, leaders, alone, beside))
    return tuple(
        Backup(*line, p)
        for line, p in zip(lines, holm(p_values), strict=True)
        if p <= scope.level and line[3].value > line[2].value
    )


def places_alone(run: Run, names: Sequence[str], *, rows: int) -> tuple[Places | None, int]:
    """Returns the items on which what a set does alone is measured, and the rows of that.

    Args:
        run: The run.
        names: The set.
        rows: Maximum number of rows.

    Returns:
        None, and the fewest rows, if these do not suffice.
    """
    components = run.model.components
    return sufficiency_items(
        run.tasks.trial(), rows, components, components.columns(names), kinds=len(_kinds(run))
    )


def alone(
    run: Run,
    verification: Verification,
    scope: Scope,
    *,
    places: Places,
    ranking: Sequence[str],
    peers: bool = True,
) -> Sufficiency:
    """Measures what a verified set does alone; without a ranking the rest is in that of gradients.

    Args:
        run: The run.
        verification: The verification.
        scope: Level, resamples and seed.
        places: The items.
        ranking: All components, as the run ranks them; empty without a run.
        peers: Whether rankings by gradients are measured too, as searches of the run.
    """
    components = run.model.components
    orders: dict[str, tuple[int, ...]] = {}
    notes: tuple[str, ...] = ()
    if peers:
        orders, notes = search.orders_by_gradients(run, rows=PEER_ROWS, seed=scope.seed)
    columns = components.columns(verification.heads)
    rest = components.columns(ranking) or orders.get("gradient", ())
    run.stages.enter("verifying: what the set does alone")
    measurer = KeptMeasurer(
        run.tasks.trial().judged(verification.baseline), places, components,
        {kind: run.under(kind).measure for kind in _kinds(run)}, scope,
    )  # fmt: skip
    own = {"ranking": tuple(dict.fromkeys([*columns, *rest, *range(len(components))]))}
    return replace(measurer.measured(columns, own | orders), notes=notes)


def _kinds(run: Run) -> list[str]:
    """Returns the run's kind of ablation, and zero and mean."""
    both = [kind for kind in ablations_of(run.model) if kind in ("zero", "mean")]
    return list(dict.fromkeys([run.ablation.kind, *both]))
