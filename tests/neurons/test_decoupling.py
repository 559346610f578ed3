"""Overlaps of pairs of items, summarized by relation."""

import json

import pytest

from broca.errors import BadInput
from broca.neurons.decoupling import ItemPair, decoupled, read_pairs, task_of
from broca.options import RuleOptions


def test_decoupling_of_identical_items_is_complete(ask, tmp_path):
    """Identical items overlap fully, relations are kept apart, and files give the same pairs."""
    letter, number = (
        {"prompt": prompt, "answer": answer}
        for prompt, answer in (("say a", " A"), ("count to nine", " z"))
    )
    pairs = [ItemPair("same", letter, letter), ItemPair("different", letter, number)]
    rule = RuleOptions(count=6, steps=3)
    same, different = decoupled(ask(task_of(pairs), rule=rule), pairs)
    assert (same.iou.value, same.of_first.value) == (1, 1)
    assert different.iou.value < 1
    assert different.random_of_larger == pytest.approx(6 / 128)
    file = tmp_path / "pairs.jsonl"
    lines = [
        {"relation": pair.relation, "first": pair.first, "second": pair.second} for pair in pairs
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert read_pairs(file) == pairs
    for content, message in (('{"relation": "same"}', "line 1"), ("", "is empty")):
        file.write_text(content)
        with pytest.raises(BadInput, match=message):
            read_pairs(file)
    with pytest.raises(BadInput, match="`pairs`"):
        read_pairs(tmp_path / "nowhere")
