"""Data sets as questions of the neuron methods."""

import json

from broca.neurons import load_texts
from broca.neurons.questions import Text


def test_every_wording_is_a_question(tmp_path):
    """Paraphrases share their content; answers lose the space that tasks put before them."""
    path = tmp_path / "data.jsonl"
    rows = [
        {"prompt": "p", "answer": "a", "paraphrases": ["q"], "content": "c"},
        {"prompt": "s", "answer": "b", "paraphrases": [], "content": None},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    texts, capability = load_texts(f"data:{path}")
    assert capability == str(path)
    assert texts == [
        Text("p", "a", "c", "wording 0"),
        Text("q", "a", "c", "wording 1"),
        Text("s", "b", "s", "wording 0"),
    ]
