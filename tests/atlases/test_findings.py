"""Findings: universal components, selections and clusters."""

from dataclasses import replace

import numpy as np
from effect_matrices import effects_of, matrix

from broca.atlases.findings import APART, EffectMatrix, clusters_of, find

NAMES = [f"L{layer}H{head}" for layer in range(2) for head in range(4)]
TASKS = ("sums", "words", "more sums", "broken")


def four_tasks():
    """Returns effects of two components of sums, two of words, one of all; task 3 is unusable."""
    effects = np.zeros((4, 8))
    effects[[0, 2], 1] = effects[[0, 2], 6] = -0.4
    effects[1, [2, 7]] = -0.3
    effects[:, 4] = -0.2
    noise = np.random.default_rng(0).normal(0, 0.01, (100, 4, 8))
    usable, capabilities = np.array([True, True, True, False]), ("sums", "words", "sums", "broken")
    return EffectMatrix(effects, effects + noise, usable, capabilities, np.ones(len(effects)))


def test_everything_is_named():
    """`find` names universal components, selections, clusters and reasons.

    Clustered components come before the others, and usable tasks before unusable ones.
    """
    findings = find(four_tasks(), TASKS, NAMES, k=3)
    assert sorted(findings.columns) == list(range(8))
    assert set(findings.columns[:5]) == {1, 2, 4, 6, 7}
    assert sorted(findings.rows[:3]) == [0, 1, 2]
    last = findings.selections[-1]
    assert (last.task, last.reason) == ("broken", "the intact model cannot do the task")
    (component,) = findings.universal
    assert (component.name, set(component.hurts)) == ("L1H0", {"sums", "words", "more sums"})
    assert component.effects["broken"] == -0.2  # shown for an unusable task, but not counted
    chosen = {
        selection.task: [part.name for part in selection.components]
        for selection in findings.selections
    }
    assert {name: set(parts) for name, parts in chosen.items()} == {
        "sums": {"L0H1", "L1H2"}, "more sums": {"L0H1", "L1H2"}, "words": {"L0H2", "L1H3"},
        "broken": set(),
    }  # fmt: skip
    # the universal profile is 35 degrees away from the profile of two of three tasks
    assert {frozenset(cluster.components) for cluster in findings.clusters} == {
        frozenset({"L0H1", "L1H2", "L1H0"}), frozenset({"L0H2", "L1H3"}),
    }  # fmt: skip
    assert ["more sums", "sums"] in list(map(sorted, findings.task_clusters))


def test_nothing_is_selected_where_effects_explain_nothing():
    """A fit that predicts held-out masks worse than the mean selects nothing."""
    explained = np.array([0.3, -0.05, 0.2, 0.3])
    findings = find(replace(four_tasks(), explained=explained), TASKS, NAMES, k=3)
    chosen = {selection.task: selection for selection in findings.selections}
    assert chosen["words"].components == ()
    assert chosen["words"].reason.startswith("effects explain nothing of its rows")
    assert chosen["sums"].components != ()
    assert all("words" not in component.hurts for component in findings.universal)


def selections(measured, k=5):
    """Returns the selection of every task of a matrix; components have the names of columns."""
    tasks, components = range(len(measured.effects)), range(measured.effects.shape[1])
    return sorted(find(measured, tasks, components, k=k).selections, key=lambda line: line.task)


def chosen(selection):
    """Returns the columns of a selection."""
    return tuple(component.name for component in selection.components)


def test_the_same_capability_is_no_control():
    """A component of both sums tasks is selected for both; a universal component for none."""
    cells = {(0, 4): -0.3, (1, 4): -0.3} | {(task, 7): -0.5 for task in range(5)}
    lines = selections(matrix(effects_of(cells)))
    assert [chosen(line) for line in lines] == [(4,), (4,), (), (), ()]
    assert set(lines[0].controls) == {2, 3, 4}
    assert lines[0].components[0].contrast == -0.3


def test_what_helps_the_others_is_not_needed_by_the_task():
    """A component with a contrast but without harm to the task is not selected."""
    cells = {(task, 6): 0.3 for task in range(5) if task != 2}
    assert chosen(selections(matrix(effects_of(cells)))[2]) == ()


def test_noise_selects_nothing():
    """Of 400 components with effects as large as their spread none is selected to reach k."""
    noisy = matrix(np.random.default_rng(3).normal(0, 0.04, (5, 400)), spread=0.04)
    assert sum(len(line.components) for line in selections(noisy)) <= 1
    assert noisy.hurts.sum() > 20  # a test of every component alone would select these


def test_only_usable_tasks_are_controls():
    """Without other capabilities the effect alone decides; unusable tasks do not count."""
    alone = selections(matrix(effects_of({(0, 1): -0.3}), capabilities=("sums",) * 5))[0]
    assert (alone.controls, chosen(alone)) == ((), (1,))
    cells = {(0, 0): -0.3, (3, 1): -0.3}
    lines = selections(matrix(effects_of(cells), usable=[True, False, True, False, True]))
    assert chosen(lines[3]) == ()
    assert set(lines[0].controls) == {2, 4}


def test_members_of_a_cluster_are_closer_than_the_cut():
    """The mean cosine distance of every cluster of random directions is at most `APART`."""
    profiles = np.random.default_rng(0).normal(size=(30, 3))
    unit = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    clusters = clusters_of(profiles)
    assert sorted(row for members in clusters for row in members) == list(range(30))
    for members in clusters:
        near = unit[list(members)] @ unit[list(members)].T
        assert near.min() > 0  # no pair of a cluster points in opposite directions
        pairs = np.triu_indices(len(members), 1)
        assert (1 - near[pairs]).sum() <= APART * len(pairs[0]) + 1e-12
