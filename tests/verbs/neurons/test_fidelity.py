"""Agreement of the neurons of one content over its wordings, on a shipped model."""

import json

import pytest
from verbs.neurons.repeating import assert_refused, repeated

import broca
from broca.neurons.paraphrases import capitals


def test_wordings_of_one_content_are_compared_with_chance(small, tmp_path):
    """Every relation of pairs has shares between 0 and 1; a second call repeats."""
    result = repeated(small, "fidelity", tmp_path).result
    assert (result.questions, result.contents, result.set_size) == ("capitals", 3, 4.0)
    assert len(result.agreements) >= 2
    for line in result.agreements:
        assert 0 <= line.iou.value <= line.of_larger.value <= 1
        assert line.of_larger.low <= line.of_larger.value <= line.of_larger.high
        assert 0 <= line.random_of_larger <= 1


def test_examples_with_paraphrases_are_compared(small, tmp_path):
    """A JSON-lines file and a task of examples give the same, each content in its wordings."""
    examples = [
        {
            "prompt": f"the capital of {country} is", "answer": f" {capital}",
            "paraphrases": [f"{country} has its capital in"],
        }
        for country, capital in list(capitals().items())[:4]
    ]  # fmt: skip
    file = tmp_path / "capitals.jsonl"
    file.write_text("".join(f"{json.dumps(example)}\n" for example in examples))
    task = broca.Task.from_examples(examples, name=str(file))
    results = [
        broca.neurons.fidelity(small, source, contents=3, steps=2) for source in (str(file), task)
    ]
    assert results[0].result == results[1].result
    assert results[0].result.contents == 3
    assert results[0].result.agreements[0].pairs == "same item, other wording"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": "sorting"}, "no paraphrases"),
    ],
)
def test_bad_input_is_one_line(small, wrong, message):
    """A task without paraphrases is refused in one line."""
    assert_refused(small, "fidelity", wrong, message)
