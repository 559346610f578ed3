"""Every neuron verb on a shipped model: it repeats from its journal, and refuses bad input."""

import json
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from journals import totals
from verbs.neurons.small_runs import FEW, arguments_of

import broca
from broca import neurons
from broca.errors import BadInput
from broca.models.usage import fingerprint
from broca.results.files import encode
from broca.runs.workspace import Workspace


def repeated(model, verb, folder):
    """Calls a verb twice on one journal, checks that it repeats, and that its file is read again.

    The result is shown as text, as HTML and as a table.
    """
    folder.mkdir(exist_ok=True)
    call = partial(getattr(neurons, verb), model, **arguments_of(verb), journal=folder / "j.sqlite")
    first = call()
    before = totals(folder / "j.sqlite")
    assert before["rows"] + before["vectors"] > 0
    assert encode(call()) == encode(first)
    assert totals(folder / "j.sqlite") == before
    file = first.save(folder)[0]
    assert file.name == ("neurons.json" if verb == "locate" else f"{verb}.json")
    assert json.loads(file.read_text())["settings"]["steps"] == 4
    assert type(first).read(file) == first
    assert len(repr(first).splitlines()) <= 5
    assert "<table" in first._repr_html_() or "<svg" in first._repr_html_()
    assert len(first.to_frame()) == len(first.records())
    return first


def test_selected_neurons_come_with_their_scores(small, tmp_path):
    """Selected neurons are sorted by score and exceed `sigma`; `count` takes the first of them."""
    result = repeated(small, "locate", tmp_path)
    scores = [neuron.score for neuron in result.selected]
    assert scores
    assert scores == sorted(scores, reverse=True)
    assert all(neuron.sigmas > 3.0 for neuron in result.selected)
    assert sum(result.by_layer.values()) == len(result.selected)
    assert result.share_of_neurons == len(result.selected) / len(small.components)
    assert (result.task, result.items) == ("sorting", 6)
    arguments = arguments_of("locate")
    several, two = (neurons.locate(small, **arguments, count=count) for count in (5, 2))
    names = [[neuron.name for neuron in chosen.selected] for chosen in (several, two)]
    assert len(names[0]) == 5
    assert names[0][:2] == names[1]


def test_methods_are_compared_on_the_task_and_the_others(small, tmp_path):
    """Methods select equally many neurons; the excess is the drop beyond that of random sets."""
    lines = repeated(small, "erase", tmp_path).result
    assert [(line.questions, line.method, line.neurons) for line in lines] == [
        (name, method, 4) for name in ("sorting", "capitals") for method in ("cnl", "gradient")
    ]
    for line in lines:
        assert line.drop.value == pytest.approx(line.before.value - line.after.value)
        assert line.random_drop.value == pytest.approx(sum(line.random_drops) / 2)
        assert line.excess.value == pytest.approx(line.drop.value - line.random_drop.value)


def test_every_arm_is_trained_and_measured(small, tmp_path):
    """Three trained sets stand beside the untrained model; their weights lie beside the journal."""
    before = fingerprint(small.model)
    arms = {line.arm: line for line in repeated(small, "enhance", tmp_path).result}
    assert fingerprint(small.model) == before
    untuned = arms.pop("untuned")
    assert (untuned.neurons, untuned.share_of_parameters) == (0, 0)
    assert len(arms) == len(list(Path(tmp_path / "deltas").iterdir())) == 3
    assert all(0 < line.share_of_parameters <= 1 for line in arms.values())
    assert all(0 <= line.score.value <= 1 for line in arms.values())


def test_sets_are_compared_by_their_overlap(small, tmp_path):
    """`cross` has every pair of data sets; shares lie between 0 and 1 for every relation."""
    names = ("sorting", "capitals")
    lines = repeated(small, "cross", tmp_path / "cross").result
    assert {(line.located_on, line.measured_on) for line in lines} == set(product(names, names))
    overlap = repeated(small, "overlap", tmp_path / "overlap").result
    assert len(overlap.summary) >= 2
    assert all(0 <= value <= 1 for means in overlap.summary.values() for value in means.values())
    decoupled = repeated(small, "decouple", tmp_path / "decouple").result
    fidelity = repeated(small, "fidelity", tmp_path / "fidelity").result
    for lines in (decoupled, fidelity.agreements):
        assert len(lines) >= 2
        for line in lines:
            assert 0 <= line.iou.value <= line.of_larger.value <= 1
            assert 0 <= line.random_of_larger <= 1


def test_examples_with_paraphrases_are_compared(small, tmp_path):
    """A JSON-lines file and a task of examples give the same, each content in its wordings."""
    examples = [
        {
            "prompt": f"the capital of {country} is", "answer": f" {capital}",
            "paraphrases": [f"{country} has its capital in"],
        }
        for country, capital in (
            ("france", "paris"), ("japan", "tokyo"), ("peru", "lima"), ("norway", "oslo"),
        )
    ]  # fmt: skip
    file = tmp_path / "capitals.jsonl"
    file.write_text("".join(f"{json.dumps(example)}\n" for example in examples))
    task = broca.Task.from_examples(examples, name=str(file))
    first, second = (
        neurons.fidelity(small, source, contents=3, steps=2) for source in (str(file), task)
    )
    assert first.result == second.result
    assert first.result.contents == 3
    assert first.result.agreements[0].pairs == "same item, other wording"


def test_every_factor_is_measured_beside_random_sets(small, tmp_path):
    """Default factors are 0 and 2; the excess is located minus random."""
    result = repeated(small, "reliability", tmp_path).result
    assert [line.factor for line in result.moved] == [0.0, 2.0]
    for line in result.moved:
        assert line.excess.value == pytest.approx(line.located.value - line.random.value)
        assert line.unrelated is not None


@pytest.mark.parametrize(
    ("verb", "wrong", "message"),
    [
        ("locate", {"task": "capitals", "method": "cln"}, "did you mean 'cnl'"),
        ("locate", {"task": "capitals", "method": "random"}, "`count`"),
        ("locate", {"task": "capitals", "method": "activation", "others": ""}, "`others`"),
        ("locate", {"task": "data:none", "fields": "x"}, "`fields`"),
        ("cross", {"tasks": "capitals"}, "two data sets"),
        ("cross", {"action": "freeze"}, "`action`"),
        ("decouple", {"pairs": "nowhere.jsonl"}, "'nowhere.jsonl' cannot be read"),
        ("enhance", {"task": "capitals", "lr": 0}, "`lr`"),
        ("enhance", {"task": "capitals", "without": "x"}, "`without`"),
        ("erase", {"task": "capitals", "methods": "x"}, "`method` 'x'"),
        ("erase", {"task": "capitals", "matching": "x"}, "`matching`"),
        ("fidelity", {"task": "sorting"}, "no paraphrases: use capitals"),
        ("fidelity", {"task": "capitals", "contents": 1}, "two contents"),
        ("overlap", {"tasks": ""}, "`tasks`"),
        ("reliability", {"task": "capitals", "factors": "a"}, "`factors`"),
        ("reliability", {"task": "capitals", "factors": "1", **FEW, "count": 4}, "other than 1"),
        ("reliability", {"task": "capitals", "factors": [float("nan")], **FEW, "count": 4}, "nan"),
        ("reliability", {"task": "capitals", "draws": 0}, "`draws`"),
    ],
)
def test_bad_input_is_one_line(small, verb, wrong, message):
    """A verb refuses an argument in one line that names parameters, not flags."""
    with pytest.raises(BadInput, match=message) as error:
        getattr(neurons, verb)(small, **wrong)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)


def test_verbs_share_scores_within_a_workspace(small):
    """`erase` reuses the scores of items that `locate` has scored."""
    with Workspace() as workspace:
        neurons.locate(small, **arguments_of("locate"), journal=workspace)
        located = totals(workspace.journal)["vectors"]
        few = {**FEW, "report_items": 4, "draws": 1, "sigma": 3.0}
        neurons.erase(small, "sorting", others="", journal=workspace, **few)
        after = totals(workspace.journal)["vectors"]
    assert located == after == 6


def test_own_examples_are_a_task(small):
    """A task of pairs or choices is accepted, by default beside neutral text."""
    pairs = [(f"{n} + {n} =", f" {2 * n}") for n in range(8)]
    choices = [{"prompt": f"{n} is", "choices": [" a", " b"], "label": n % 2} for n in range(8)]
    for examples in (pairs, choices):
        task = broca.Task.from_examples(examples, name="own")
        result = neurons.erase(small, task, report_items=4, draws=1, count=3, **FEW)
        assert [(part.questions, part.neurons) for part in result.result] == [
            ("own", 3),
            ("neutral_text", 3),
        ]
        assert result.settings["others"] == ["neutral_text"]
