"""Neurons found by random ablation: planted ones are found, budgets are kept."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons import Measurer, Rule, Scaled, SensingOptions, sense
from broca.neurons.effects import Answers
from broca.neurons.sensing import equal_rows, first_groups

PLANTED = [5, 70, 100]


class Planted:
    """Stands in for a measurer: ablating a planted neuron costs, all others cost nothing."""

    def __init__(self):
        self.rows = self.tokens = 0

    def rows_under(self, questions, sets, index, **_):
        """Additive effects and small noise."""
        self.rows += len(questions)
        rng = np.random.default_rng(self.rows)
        cost = np.array([len(np.intersect1d(one.columns, PLANTED)) for one in sets])
        return Answers(
            np.full(len(questions), np.nan),
            -cost[np.asarray(index)] + rng.normal(0, 0.05, len(questions)),
        )


@pytest.mark.parametrize("method", ["cs-stratified", "one-shot", "greedy"])
def test_coarse_to_fine_finds_planted_neurons(neurons, ask, method):
    """By every search, within the budget, in levels that grow finer."""
    options = SensingOptions(method=method, rows=3000, groups=32, keep=4, items=4, sparsity=0.1)
    found = sense(neurons, ask(8), measurer=Planted(), options=options, rule=Rule(count=3))
    assert found.columns.tolist() == PLANTED
    assert found.rows <= 3000
    assert [level.size for level in found.levels] == [4, 1]
    assert found.rows == sum(level.rows for level in found.levels)


def test_masked_gradients_are_the_mean_over_random_masks(neurons, ask):
    """Equal to finite differences of the gates, averaged over the same masks."""
    measurer, questions = Measurer(neurons), ask(3)
    options = SensingOptions(rows=18, rate=0.3)
    found = sense(neurons, questions, measurer=measurer, options=options, rule=Rule(count=4))
    assert (found.rows, len(found.columns)) == (18, 4)
    checked = [0, int(np.argmax(np.abs(found.scores))), 127]
    step, slopes = 0.02, np.zeros(len(checked))
    for number in range(6):
        closed = np.random.default_rng([0, 23, number]).random(len(neurons)) < 0.3
        question = questions.questions[number % 3]
        for place, neuron in enumerate(checked):
            values = []
            for sign in (1, -1):
                gates = measurer.gates([Scaled(np.flatnonzero(closed))])
                gates[0, measurer._gated[neuron]] += sign * step
                (answer,) = measurer._engine.run([question.gold], gates, np.zeros(1, dtype=int))
                values.append(answer.value / len(question.gold.continuation))
            slopes[place] += (values[0] - values[1]) / (2 * step) / 6
    np.testing.assert_allclose(found.scores[checked], slopes, atol=2e-3, rtol=2e-2)


def test_groups_cover_every_neuron_once_within_layers(neurons):
    """A partition; no group spans two layers."""
    groups = first_groups(neurons, 10, np.random.default_rng(0))
    assert sorted(np.concatenate(groups).tolist()) == list(range(128))
    assert all(len(set(neurons.layers[group].tolist())) == 1 for group in groups)


def test_equal_cost_grows_with_steps(neurons, ask):
    """Twice the steps, nearly twice the rows; by hand for one item."""
    questions = ask(1)
    gold = questions.questions[0].gold
    reads, answers = len(gold.context) + len(gold.continuation), len(gold.continuation)
    by_hand = (reads + 3 * answers * 20 * (1 + 0.5)) / reads
    assert equal_rows(neurons, questions, steps=19) == round(by_hand)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"method": "cs-stratifed"}, "did you mean"), ({"rate": 0.0}, "rate"), ({"split": 1}, "split"),
     ({"rows": 0}, "rows")],
)  # fmt: skip
def test_wrong_options_are_refused(wrong, name):
    """Each by its name."""
    with pytest.raises(BadInput, match=name):
        SensingOptions(**wrong)
