"""Experiments on located neurons: scale, erase or train them, and as many random ones."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.methods import EMPTY, Columns, random_sets
from broca.neurons.neuron_run import ItemPlaces, NeuronRun, Responses
from broca.neurons.tuning import NeuronDelta, Trained, Training, trained, zeros
from broca.options import DrawOptions, TrainingOptions
from broca.results.base import Interval
from broca.results.neurons import Arm, Crossed, Erased, Moved, Reliability


def _with_random(run: NeuronRun, sets: Sequence[Columns], chance: DrawOptions) -> list[Columns]:
    """Returns every set, each followed by its random sets."""
    layers, seed = run.neurons.layers, run.seed
    every = ((columns, *random_sets(columns, layers, chance, seed=seed)) for columns in sets)
    return [columns for arms in every for columns in arms]


def moved(
    run: NeuronRun,
    task: str,
    chance: DrawOptions,
    *,
    unrelated: ItemPlaces = EMPTY,
    factors: Sequence[float],
) -> Reliability:
    """Scales every item's neurons and measures the item, random sets, and unrelated prompts.

    Args:
        run: The run.
        task: The task, each of whose `locate` items has its own neurons.
        chance: Random sets for every item.
        unrelated: Items that should not change; each item of the task is paired with one, in turn.
        factors: Factors of the neurons' activations.

    Raises:
        BadInput: No item has located neurons.
    """
    every = run.item_sets(task)
    chosen = [index for index, columns in enumerate(every) if len(columns)]
    if not chosen:
        raise BadInput(
            f"no neuron of any item of '{task}' stands out: lower `sigma` or give `count`"
        )
    places, sets = run.places(task)[chosen], [every[index] for index in chosen]
    items, arms_each = len(sets), chance.draws + 1
    others = unrelated[np.arange(items) % len(unrelated)] if len(unrelated) else EMPTY
    both = np.concatenate([places, others])
    run.stages.enter("measuring the intact model")
    intact = np.exp(run.log_probability(both, [EMPTY], np.zeros_like(both)))
    before, others_before = intact[:items], intact[items:]
    arms = _with_random(run, sets, chance)
    rows = np.concatenate([np.repeat(places, arms_each), others])
    index = np.concatenate([np.arange(len(arms)), np.arange(len(others)) * arms_each])
    results = []
    for factor in factors:
        run.stages.enter(f"scaling by {factor:g}")
        after = np.exp(run.log_probability(rows, arms, index, factor))
        by_item, others_after = after[: len(arms)].reshape(items, arms_each), after[len(arms) :]
        located, random = by_item[:, 0], by_item[:, 1:].mean(axis=1)
        change = located - before
        results.append(
            Moved(
                factor=factor,
                located=run.difference(located, before),
                random=run.difference(random, before),
                excess=run.difference(located, random),
                unrelated=run.difference(others_after, others_before) if len(others) else None,
                relative=float(change.mean() / before.mean()),
                as_claimed=float(((change > 0) if factor > 1 else (change < 0)).mean()),
            )
        )
    return Reliability(
        questions=task,
        items=items,
        empty=len(every) - items,
        set_size=float(np.mean([len(columns) for columns in sets])),
        probability=float(before.mean()),
        draws=chance.draws,
        moved=tuple(results),
    )


def erased(
    run: NeuronRun,
    sets: Mapping[str, Columns],
    chance: DrawOptions,
    *,
    factor: float = 0.0,
) -> tuple[Erased, ...]:
    """Erases every set on the `report` items of every task of the run.

    Args:
        run: The run.
        sets: The located neurons of every method; none is empty.
        chance: Random sets for comparison.
        factor: Factor of the neurons' activations; 0 erases.
    """
    arms = _with_random(run, list(sets.values()), chance)
    results = []
    for name in run.names:
        run.stages.enter(f"erasing on {name}")
        places = run.places(name, "report")
        intact, after = run.scaled(places, [EMPTY]), run.scaled(places, arms, factor)
        before, likelihood = intact.scores[0], intact.log_probability[0]
        for number, (method, columns) in enumerate(sets.items()):
            first = number * (chance.draws + 1)
            located, *random = after.scores[first : first + 1 + chance.draws]
            mean: NDArray[np.float64] = np.mean(random, axis=0)
            results.append(
                Erased(
                    method=method,
                    questions=name,
                    neurons=len(columns),
                    before=run.score(name, before),
                    after=run.score(name, located),
                    drop=run.lost(name, before, located),
                    random_drop=run.lost(name, before, mean),
                    random_drops=tuple(float(np.mean(before - draw)) for draw in random),
                    excess=run.lost(name, mean, located),
                    log_probability_drop=run.difference(likelihood, after.log_probability[first]),
                )
            )
    return tuple(results)


def enhanced(
    run: NeuronRun,
    located: Columns,
    task: str,
    chance: DrawOptions,
    options: TrainingOptions,
    *,
    without: str = "",
    of: str = "",
) -> tuple[Arm, ...]:
    """Trains every set from the same weights on the same items, and measures it on every task.

    Args:
        run: The run; it restores the model's weights.
        located: The located neurons.
        task: The task whose `locate` items are the training items and whose `confirm` items are the
            validation items.
        chance: Random sets of the located set's size.
        options: Options of the training.
        without: State of the located neurons while all others are trained, `zeroed` or `frozen`;
            empty if the others are not trained.
        of: End of the names of stages.
    """
    neurons, none = run.neurons, NeuronDelta(())
    chosen = {"untuned": EMPTY, "located": located}
    if without:
        chosen["without located"] = np.setdiff1d(np.arange(len(neurons)), located)
    random = _with_random(run, [located], chance)[1:]
    chosen |= {f"random {number}": columns for number, columns in enumerate(random, start=1)}
    train, validation = (run.golds(run.places(task, part)) for part in ("locate", "confirm"))
    untuned: dict[str, Responses] = {}
    arms = []
    for arm, columns in chosen.items():
        done, changed = Trained((), 0, 0, none), run
        if len(columns):
            run.stages.enter(f"training {arm}{of}")
            zeroed = arm == "without located" and without == "zeroed"
            base = zeros(neurons, located) if zeroed else none
            training = Training(columns, train, validation, options, run.seed, base)
            done = trained(neurons, training, run.deltas, run.stages)
            changed = run.changed(done.delta)
        run.stages.enter(f"measuring {arm}{of}")
        for name in run.names:
            after = changed.scaled(run.places(name, "report"), [EMPTY])
            before = untuned.setdefault(name, after)
            likelihood = after.log_probability[0], before.log_probability[0]
            arms.append(
                Arm(
                    arm=arm,
                    questions=name,
                    neurons=len(columns),
                    share_of_neurons=len(columns) / len(neurons),
                    share_of_parameters=done.parameters / neurons.parameters,
                    score=run.score(name, after.scores[0]),
                    change=run.lost(name, after.scores[0], before.scores[0]),
                    log_probability_change=run.difference(*likelihood),
                    best_epoch=done.best,
                    losses=done.losses,
                )
            )
        if changed is not run:
            changed.run.finish()
    return tuple(arms)


def crossed(
    run: NeuronRun,
    sets: Mapping[str, Columns],
    chance: DrawOptions,
    training: TrainingOptions | None,
) -> tuple[Crossed, ...]:
    """Erases or trains every task's neurons and measures on the `report` items of every task.

    Args:
        run: The run; it restores the model's weights.
        sets: Located neurons of every task; empty ones are left out.
        chance: Random sets for comparison.
        training: How each task's neurons are trained on it; None erases them.
    """
    located = {name: columns for name, columns in sets.items() if len(columns)}
    changes: dict[tuple[str, str], tuple[Interval, float, Interval]] = {}
    if training is None:
        for on in erased(run, located, chance):
            gained = _minus(on.log_probability_drop)
            random = 0.0 - on.random_drop.value
            changes[on.method, on.questions] = _minus(on.drop), random, gained
    else:
        for name, columns in located.items():
            arms = enhanced(run, columns, name, chance, training, of=f" of {name}")
            for other in run.names:
                _, own, *randoms = (arm for arm in arms if arm.questions == other)
                mean = sum(arm.change.value for arm in randoms) / len(randoms)
                changes[name, other] = own.change, mean, own.log_probability_change
    action = "tune" if training else "erase"
    return tuple(
        Crossed(action, name, on, run.relation(name, on), len(columns), *changes[name, on])
        for name, columns in located.items()
        for on in run.names
    )


def _minus(interval: Interval) -> Interval:
    """Returns the interval of the opposite change, without negative zeros."""
    return Interval(0.0 - interval.value, 0.0 - interval.high, 0.0 - interval.low)
