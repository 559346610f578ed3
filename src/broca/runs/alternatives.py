"""What a set does alone, other sets beneath it or instead of it, and members that are backups."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from broca import designs
from broca.engine.ablation import ablations_of
from broca.options import LocalizeOptions
from broca.results.sufficiency import Alternative, Backup, Sufficiency
from broca.results.verification import Verification
from broca.runs import search
from broca.runs.run import Run
from broca.verification import Scope
from broca.verification.evidence import Evidence
from broca.verification.statistics import holm, paired_test
from broca.verification.sufficiency import PEER_ROWS, KeptMeasurer, sufficiency_items
from broca.verification.trial import Places

PAIRED_ROWS = 4000
"""Maximum number of rows on which pairs of members are measured."""

MEMBERS = 12
"""Maximum number of members of all sets whose pairs are measured."""


def alternatives(
    run: Run,
    options: LocalizeOptions,
    method: str,
    selected: Sequence[int],
    scores: Mapping[str, float],
) -> tuple[tuple[Alternative, ...], tuple[Backup, ...]]:
    """Searches again while all members so far are ablated, and among all others.

    Args:
        run: The run that found the set.
        options: The options of its localization, with the budget of every search.
        method: Name of the method.
        selected: Columns of the set.
        scores: Score of every task on the intact model.

    Returns:
        Sets in the order of their searches, and pairs of members whose costs do not add up.
    """
    trial, names = run.tasks.trial().judged(scores), run.model.components.names
    scope, members = Scope(seed=options.seed), dict.fromkeys(selected)
    found: list[Alternative] = []
    for how in ("beneath", "instead"):
        given = list(selected)
        for _ in range(options.alternatives):
            base = given if how == "beneath" else []
            columns: list[int] = []
            reason, rows = "nothing of the task is left", 0
            left = run.scores(base, [trial.task])[trial.task]
            items = len(trial.places[trial.task])
            if not trial.benchmarks[trial.task].at_chance(left, items=items):
                columns, reason, rows = search.alternative(
                    run, options, method, given, ablated=how == "beneath"
                )
            masks = designs.of_sets([base, [*base, *columns]], len(names))
            evidence = Evidence(trial, scope, trial.responses(run.measure, masks, trial.places))
            drop, (_, specific) = evidence.drop(trial.task), evidence.contrast()
            _, p = evidence.test(trial.task)
            if columns and (p > scope.level or drop.value <= 0):
                reason = "on fresh items it costs nothing for certain"
            heads = tuple(names[column] for column in columns)
            found.append(Alternative(how, heads, drop, specific, p, rows, reason))
            if reason:
                break
            given += columns
            members |= dict.fromkeys(columns)
    several = list(members)[:MEMBERS]
    places = trial.at_most(PAIRED_ROWS // (1 + len(several) * (len(several) + 1) // 2))
    return tuple(found), backups(run, several, scope, places)


def backups(run: Run, columns: Sequence[int], scope: Scope, places: Places) -> tuple[Backup, ...]:
    """Returns the members that cost significantly more where another one is ablated too.

    Args:
        run: The run.
        columns: The members.
        scope: Level, resamples and seed.
        places: The items.
    """
    trial, names = run.tasks.trial(), run.model.components.names
    pairs = list(combinations(columns, 2))
    sets = [[], *([column] for column in columns), *pairs]
    masks, task = designs.of_sets(sets, len(names)), trial.task
    responses = trial.responses(run.measure, masks, {task: places[task]})
    evidence, rows = Evidence(trial, scope, responses), responses[task]
    lines, p_values = [], []
    for both, (first, second) in enumerate(pairs, start=1 + len(columns)):
        single = sorted((1 + columns.index(first), 1 + columns.index(second)),
                        key=lambda row: float(rows[row].mean()))  # fmt: skip
        of, head = single  # the one that costs more alone, and the one that takes over
        alone, beside = evidence.drop(task, head), evidence.drop(task, both, before=of)
        p_values.append(
            paired_test(rows[of] - rows[both], rows[0] - rows[head], seed=scope.seed)[1]
        )
        lines.append((names[columns[head - 1]], names[columns[of - 1]], alone, beside))
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
    components, orders, notes = (
        run.model.components,
        dict[str, tuple[int, ...]](),
        tuple[str, ...](),
    )
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
