"""The experiments end to end on a tiny model: their parts fit together and mean what they say."""

import json

import numpy as np
import pytest
import torch

from broca.errors import BadInput
from broca.neurons import (
    Measurer,
    Pair,
    Parts,
    Rule,
    Text,
    TuningOptions,
    choose,
    cross,
    decouple,
    enhance,
    erase,
    fidelity,
    from_texts,
    item_scores,
    item_set,
    overlap,
    overlap_page,
    overlaps,
    reliability,
)
from broca.neurons.decoupling import read_pairs

RULE = Rule(count=6)


def test_fidelity_compares_what_it_says(neurons, ask):
    """Paraphrases' overlap is the mean over contents, recomputed here from the items' sets."""
    questions = ask(8)  # four contents in two wordings
    found = fidelity(neurons, questions, rule=RULE, steps=3)
    sets = [
        item_set(one, neurons.layers, RULE)
        for one in item_scores(neurons, questions, steps=3).scores
    ]
    same = [overlap(sets[2 * c], sets[2 * c + 1], neurons=128).iou for c in range(4)]
    assert found.agreements[0].pairs == "same item, other wording"
    assert found.agreements[0].iou.mean == pytest.approx(np.mean(same))
    assert {one.pairs for one in found.agreements} == {
        "same item, other wording", "other item, same wording", "other item, other wording",
    }  # fmt: skip
    assert (found.contents, found.set_size, found.empty) == (4, 6, 0)


def test_fidelity_needs_paraphrases(neurons, tokenizer):
    """Data without any are refused."""
    questions = from_texts("plain", [Text("a", "b"), Text("c", "d")], tokenizer)
    with pytest.raises(BadInput, match="no paraphrases"):
        fidelity(neurons, questions, rule=RULE)


def test_reliability_moves_each_item_with_its_own_neurons(neurons, ask):
    """The located change of one item equals erasing its set by hand."""
    questions, measurer = ask(4), Measurer(neurons)
    found = reliability(
        neurons, questions, measurer=measurer, rule=RULE, steps=3, draws=2,
        unrelated=ask(3, start=9).questions,
    )  # fmt: skip
    assert [one.factor for one in found.moved] == [0.0, 2.0]
    assert (found.items, found.empty, found.draws) == (4, 0, 2)
    changes = []
    scores = item_scores(neurons, questions, steps=3).scores
    for index, question in enumerate(questions.questions):
        gates = np.ones((2, len(neurons.model.components)), dtype=np.float32)
        own = item_set(scores[index], neurons.layers, RULE)
        gates[1, measurer._gated[own]] = 0
        answers = measurer._engine.run([question.gold] * 2, gates, np.array([0, 1]))
        changes.append(np.exp(answers[1].value) - np.exp(answers[0].value))
    assert found.moved[0].located.mean == pytest.approx(np.mean(changes), rel=1e-3)
    assert found.moved[0].unrelated.n == 4
    with pytest.raises(BadInput, match="--draws"):
        reliability(neurons, questions, measurer=measurer, rule=RULE, draws=0)


def test_decoupling_of_identical_items_is_complete(neurons, tokenizer, tmp_path):
    """A pair of one item overlaps wholly; relations are kept apart; pairs come from files too."""
    one, other = Text("say a", "A"), Text("count to nine", "z")
    pairs = [Pair("same", one, one), Pair("different", one, other)]
    same, different = decouple(neurons, pairs, tokenizer, rule=RULE, steps=3)
    assert (same.iou.mean, same.of_first.mean) == (1, 1)
    assert different.iou.mean < 1
    assert different.random_of_larger == pytest.approx(6 / 128)
    file = tmp_path / "pairs.jsonl"
    lines = [
        {"relation": p.relation, **{k: {"prompt": t.prompt, "answer": t.answer}
                                    for k, t in (("first", p.first), ("second", p.second))}}
        for p in pairs
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)))
    assert [pair.relation for pair in read_pairs(file)] == ["same", "different"]
    file.write_text('{"relation": "same"}')
    with pytest.raises(BadInput, match="line 1"):
        read_pairs(file)


def test_overlaps_compare_halves_and_name_relations(neurons, ask):
    """Two data sets of two halves each: six pairs; the matrix has the halves on its diagonal."""
    first, second = ask(8), ask(8, name="others", start=12)
    found = overlaps(neurons, [first, second], rule=RULE, steps=3)
    assert len(found.pairs) == 6
    assert [pair.relation for pair in found.pairs].count("same data") == 2
    assert [pair.relation for pair in found.pairs].count("other capability") == 4
    matrix = np.array(found.matrix())
    assert np.allclose(matrix, matrix.T)
    assert matrix[0, 0] == found.pairs[0].overlap.of_larger
    across = [p.overlap.of_larger for p in found.pairs if p.relation == "other capability"]
    assert matrix[0, 1] == pytest.approx(np.mean(across))
    page = overlap_page(found, title="<b>")
    assert "&lt;b&gt;" in page
    assert "others" in page


def test_erasing_hurts_by_what_was_there(neurons, ask):
    """Nats lost equal the difference of the two measurements; random draws are all there."""
    questions, measurer = ask(6), Measurer(neurons)
    columns = choose(neurons, questions, rule=RULE, steps=3).columns
    (found,) = erase(neurons, {"cnl": columns}, [questions], measurer=measurer, draws=3)
    assert (found.neurons, len(found.random_drops)) == (6, 3)
    assert found.drop.mean == pytest.approx(found.before.mean - found.after.mean)
    assert found.excess.mean == pytest.approx(found.drop.mean - np.mean(found.random_drops))
    assert found.log_probability_drop.mean != 0
    with pytest.raises(BadInput, match="located no neuron"):
        erase(neurons, {"cnl": columns[:0]}, [questions], measurer=measurer)


@pytest.mark.parametrize("without", ["zeroed", "frozen"])
def test_enhance_trains_every_arm_from_the_same_weights(neurons, ask, without):
    """Arms, shares and gains are there; training on what is measured gains; weights come back."""
    before = {n: v.clone() for n, v in neurons.model.model.state_dict().items()}
    questions = ask(6)
    arms = enhance(
        neurons, np.array([1, 5, 70]), questions, questions, [questions],
        measurer=Measurer(neurons), options=TuningOptions(lr=0.02, epochs=4), draws=2,
        without=without,
    )  # fmt: skip
    assert [one.arm for one in arms] == [
        "untuned", "located", "without located", "random 1", "random 2",
    ]  # fmt: skip
    assert [one.neurons for one in arms] == [0, 3, 125, 3, 3]
    assert arms[0].change.mean == 0
    assert arms[1].log_probability_change.mean > 0
    assert arms[2].log_probability_change.mean > arms[1].log_probability_change.mean
    assert arms[1].share_of_parameters < arms[2].share_of_parameters / 30
    after = neurons.model.model.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())


@pytest.mark.parametrize("action", ["erase", "tune"])
def test_crossing_measures_every_pair(neurons, ask, action):
    """Each data set's neurons on each data set; empty sets are left out."""
    first, second = ask(4), ask(4, name="others", start=12)
    data = [Parts(one, one, one) for one in (first, second)]
    sets = [np.array([1, 2, 70]), np.array([], dtype=int)]
    found = cross(
        neurons, sets, data, action=action, measurer=Measurer(neurons), draws=1,
        options=TuningOptions(lr=0.02, epochs=2),
    )  # fmt: skip
    assert [(one.located_on, one.measured_on) for one in found] == [
        ("letters", "letters"), ("letters", "others"),
    ]  # fmt: skip
    assert [one.relation for one in found] == ["same data", "other capability"]
    gained = found[0].log_probability_change.mean
    assert gained > 0 if action == "tune" else gained != 0


@pytest.mark.parametrize("method", ["cnl", "knowledge-neurons", "activation", "gradient", "random"])
def test_every_method_gives_the_wanted_number(neurons, ask, method):
    """At equal count they can be compared."""
    contrast = [ask(4, name="others", start=12)]
    choice = choose(neurons, ask(6), method=method, rule=RULE, steps=3, contrast=contrast)
    assert len(choice.columns) == 6
    assert choice.columns.tolist() == sorted(set(choice.columns.tolist()))


def test_knowledge_neurons_follow_their_two_thresholds(neurons, ask):
    """Above a fifth of an item's highest score, in more than two fifths of the items."""
    questions = ask(6)
    scores = item_scores(neurons, questions, steps=3).scores
    votes = (scores > 0.2 * scores.max(1, keepdims=True)).mean(0)
    choice = choose(neurons, questions, method="knowledge-neurons", steps=3)
    assert choice.columns.tolist() == np.flatnonzero(votes > 0.4).tolist()


def test_activation_difference_finds_a_planted_difference(neurons, ask, monkeypatch):
    """A neuron that is active here and not there comes first."""
    from broca.neurons import methods

    original = methods.item_scores

    def planted(neurons, questions, **options):
        found = original(neurons, questions, **options)
        activations = np.random.default_rng(len(questions)).normal(size=found.activations.shape)
        activations[:, 9] += 40.0 * (questions.name == "letters")
        return type(found)(found.scores, activations.astype(np.float32), found.probability,
                           found.residual, found.computed)  # fmt: skip

    monkeypatch.setattr(methods, "item_scores", planted)
    contrast = [ask(5, name="others")]
    choice = choose(neurons, ask(6), method="activation", rule=Rule(count=1), contrast=contrast)
    assert choice.columns.tolist() == [9]


@pytest.mark.parametrize(
    ("method", "message"),
    [("cnll", "did you mean 'cnl'"), ("activation", "--others"), ("random", "--count")],
)
def test_methods_say_what_they_lack(neurons, ask, method, message):
    """In one line."""
    with pytest.raises(BadInput, match=message):
        choose(neurons, ask(2), method=method)
