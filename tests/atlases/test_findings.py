"""Findings: names, display order, reasons, and cases without a test of groups."""

from dataclasses import replace

import numpy as np

from broca.atlases import find, keep_to_groups
from broca.verification.effects import EffectMatrix

NAMES = [f"L{layer}H{head}" for layer in range(2) for head in range(4)]
TASKS = ("sums", "words", "more sums", "broken")


def matrix():
    """Returns effects of two components of sums, two of words, one of all; task 3 is unusable."""
    effects = np.zeros((4, 8))
    effects[[0, 2], 1] = effects[[0, 2], 6] = -0.4
    effects[1, [2, 7]] = -0.3
    effects[:, 4] = -0.2
    noise = np.random.default_rng(0).normal(0, 0.01, (100, 4, 8))
    return EffectMatrix(
        effects,
        effects + noise,
        np.array([True, True, True, False]),
        ("sums", "words", "sums", "broken"),
        0.05,
    )


def test_everything_is_named():
    """`find` names universal components, selections, clusters and reasons."""
    findings = find(matrix(), TASKS, NAMES, k=3)
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
    reasons = {selection.task: selection.reason for selection in findings.selections}
    assert reasons["broken"] == "the intact model cannot do the task"
    assert reasons["sums"] == ""
    # the universal profile is 35 degrees away from the profile of two of three tasks
    assert {frozenset(cluster.components) for cluster in findings.clusters} == {
        frozenset({"L0H1", "L1H2", "L1H0"}), frozenset({"L0H2", "L1H3"}),
    }  # fmt: skip
    assert ("sums", "more sums") in findings.task_clusters or (
        "more sums", "sums",
    ) in findings.task_clusters  # fmt: skip


def test_order_is_a_permutation_with_clusters_first():
    """Clustered components come before the others, and usable tasks before unusable ones."""
    findings = find(matrix(), TASKS, NAMES, k=3)
    assert sorted(findings.columns) == list(range(8))
    assert set(findings.columns[:5]) == {1, 2, 4, 6, 7}
    assert sorted(findings.rows) == [0, 1, 2, 3]
    assert findings.rows[-1] == 3
    tasks = [TASKS[row] for row in findings.rows]
    assert [selection.task for selection in findings.selections] == tasks


def test_groups_are_tested_where_there_are_some():
    """Pairs of heads of a capability are tested; capabilities with one head have no pairs."""
    chosen = {"sums": ["L0H0", "L0H1"], "words": ["L1H3"]}
    test, why_not = keep_to_groups(chosen, {0: 2, 1: 2}, NAMES, seed=0)
    assert why_not == ""
    assert (test.pairs, test.group_size) == (1, 2)
    assert [head_set.capability for head_set in test.sets] == ["sums"]
    assert abs(test.expected - 1 / 3) < 0.03


def test_why_groups_mean_nothing():
    """The note names the reason: no groups, a single group, no heads, or no pairs."""
    pair = {"sums": ["L0H0", "L0H1"]}
    for chosen, sizes, names, reason in (
        (pair, {0: 1, 1: 1}, NAMES, "keys and values of its own"),
        (pair, {0: 4, 1: 4}, NAMES, "there is one group"),
        (pair, {0: 2, 1: 2}, ["L0M", "L1M"], "not attention heads"),
        ({"sums": ["L0H0"], "words": []}, {0: 2, 1: 2}, NAMES, "no capability has two"),
    ):
        test, why_not = keep_to_groups(chosen, sizes, names, seed=0)
        assert test is None
        assert reason in why_not


def test_nothing_is_selected_where_effects_explain_nothing():
    """A fit that predicts held-out masks worse than the mean selects nothing."""
    explained = np.array([0.3, -0.05, 0.2, 0.3])
    findings = find(replace(matrix(), explained=explained), TASKS, NAMES, k=3)
    chosen = {selection.task: selection for selection in findings.selections}
    assert chosen["words"].components == ()
    assert chosen["words"].reason.startswith("effects explain nothing of its rows")
    assert chosen["sums"].components != ()
    assert all("words" not in component.hurts for component in findings.universal)
