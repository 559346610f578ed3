"""Drops on report items, computed from scores."""

from dataclasses import dataclass

import numpy as np
import pytest

from broca.verification import prove


@dataclass
class FakeTask:
    """A task whose score is the mean of its items."""

    higher_is_better: bool = True

    def aggregate(self, values):
        """Returns the mean."""
        return float(np.mean(values))

    def loss(self, before, after):
        """Returns the loss as `Benchmark.loss` does."""
        return before - after if self.higher_is_better else after - before


def test_drops_are_differences_of_scores():
    """The specific drop is the task's drop minus the mean of the others'."""
    tasks = {"a": FakeTask(), "b": FakeTask(), "c": FakeTask()}
    proof = prove("a", tasks, {"a": 0.9, "b": 0.8, "c": 1.0}, {"a": 0.1, "b": 0.7, "c": 1.0})
    assert proof.drop == pytest.approx(0.8)
    assert proof.off_target_drop == pytest.approx(0.05)
    assert proof.specific_drop == pytest.approx(0.75)


def test_without_others_there_is_no_off_target_drop():
    """Without other tasks the off-target drop is None and the specific drop is the drop."""
    proof = prove("a", {"a": FakeTask()}, {"a": 0.9}, {"a": 0.1})
    assert proof.off_target_drop is None
    assert proof.specific_drop == pytest.approx(0.8)


def test_metric_where_lower_is_better_counts_the_rise():
    """A rise of a perplexity is a positive drop."""
    tasks = {"a": FakeTask(higher_is_better=False)}
    assert prove("a", tasks, {"a": 3.0}, {"a": 5.0}).drop == pytest.approx(2.0)
