"""Every neuron verb on a shipped model: it repeats from its journal, and refuses bad input."""

import json
from functools import partial

import pytest
from journals import totals
from verbs.neurons.small_runs import FEW, arguments_of

import broca
from broca import neurons
from broca.errors import BadInput
from broca.results.files import encode


def repeated(model, verb, folder):
    """Calls a verb twice on one journal; checks that it repeats and that its file is read again."""
    folder.mkdir(exist_ok=True)
    call = partial(getattr(neurons, verb), model, **arguments_of(verb), journal=folder / "j.sqlite")
    first = call()
    before = totals(folder / "j.sqlite")
    assert before["rows"] + before["vectors"] > 0
    assert encode(call()) == encode(first)
    assert totals(folder / "j.sqlite") == before
    file = first.save(folder)[0]
    assert json.loads(file.read_text())["settings"]["steps"] == 4
    assert type(first).read(file) == first
    return first


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("verb", "wrong", "message"),
    [
        ("locate", {"task": "capitals", "method": "cln"}, "did you mean 'cnl'"),
        ("locate", {"task": "capitals", "method": "random"}, "`count`"),
        ("locate", {"task": "capitals", "others": "sorting"}, "'cnl' compares with no other task"),
        ("locate", {"task": "capitals", "method": "activation", "others": ""}, "`others`"),
        ("locate", {"task": "calls", "method": "activation", "items": 1}, "two items"),
        ("locate", {"task": "data:none", "fields": "x"}, "`fields`"),
        ("erase", {"task": "capitals", "methods": "x"}, "`method` 'x'"),
        ("erase", {"task": "capitals", "draws": 0}, "`draws`"),
        ("erase", {"task": "capitals", "matching": "x"}, "`matching`"),
        ("erase", {"task": "x", "factor": 1}, "other than 1"),
        ("erase", {"task": "x", "factor": float("nan")}, "nan"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(small, verb, wrong, message):
    """A verb refuses an argument in one line that names parameters, not flags."""
    with pytest.raises(BadInput, match=message) as error:
        getattr(neurons, verb)(small, **wrong)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)


def test_verbs_share_scores_within_a_workspace(small):
    """`erase` reuses the scores of items that `locate` has scored."""
    with broca.Workspace() as workspace:
        neurons.locate(small, **arguments_of("locate"), journal=workspace)
        located = totals(workspace.journal)["vectors"]
        few = {**FEW, "report_items": 4, "draws": 1, "sigma": 3.0}
        neurons.erase(small, "sorting", others="", journal=workspace, **few)
        after = totals(workspace.journal)["vectors"]
    assert located == after == 6
    gradient = neurons.locate(small, **arguments_of("locate"), method="gradient")
    assert gradient.residual is None


def test_own_examples_are_a_task(small):
    """A task of pairs or choices is accepted, by default beside neutral text."""
    pairs = [(f"{n} + {n} =", f" {2 * n}") for n in range(8)]
    choices = [{"prompt": f"{n} is", "choices": [" a", " b"], "label": n % 2} for n in range(8)]
    for examples in (pairs, choices):
        task = broca.Task.from_examples(examples, name="own")
        result = neurons.erase(small, task, report_items=4, draws=1, count=3, **FEW)
        erased = [(part.questions, part.neurons) for part in result.result]
        assert erased == [("own", 3), ("neutral_text", 3)]
        assert result.settings["others"] == ["neutral_text"]
