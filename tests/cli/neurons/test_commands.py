"""`broca neurons` as a user meets it."""

import json

import pytest
from cli.neurons.running import neurons, scored
from cli.running import assert_refused, broca


def test_locate_writes_neurons_json(out):
    """With shares, settings and the selected neurons; the scores of the items lie beside it."""
    data = json.loads((out / "neurons.json").read_text())
    assert (data["schema"], data["task"], data["items"]) == (2, "capitals", 6)
    assert (data["settings"]["sigma"], data["settings"]["steps"]) == (6.0, 19)
    assert data["model"]["neurons"] == 1536
    assert 0 < data["share_of_neurons"] < 0.05
    assert all(neuron["sigmas"] > 6 for neuron in data["selected"])
    assert scored(out) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["locate", "reference", "--task", "capitals", "--scope", "head"], "--scope"),
        (["locate", "reference", "--task", "capitals", "--method", "cln"], "did you mean 'cnl'"),
        (["locate", "reference", "--task", "capital"], "did you mean 'capitals'"),
        (["locate", "reference", "--task", "data:none", "--fields", "x"], "--fields"),
        (["fidelity", "reference", "--task", "sorting"], "no paraphrases"),
        (["decouple", "reference", "--pairs", "nowhere.jsonl"], "nowhere.jsonl.* cannot be read"),
        (["reliability", "reference", "--task", "capitals", "--factors", "a"], "--factors"),
        (["cross", "reference", "--tasks", "capitals"], "two data sets"),
        (["enhance", "reference", "--task", "capitals", "--lr", 0], "--lr"),
        (["erase", "reference", "--task", "capitals", "--methods", "x"], "'x' is unknown"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path):
    """What, why, and what to do."""
    assert_refused(broca("neurons", *arguments, "--out", tmp_path), message)


def test_erase_compares_methods_at_equal_size(out):
    """On the task and the others; a table on stdout, everything in erase.json."""
    printed = neurons(
        "erase", "reference", "--task", "capitals", "--others", "rhyming", "--items", 6,
        "--methods", "cnl,knowledge-neurons,gradient", "--report-items", 10,
        "--draws", 1, "--count", 4, "--out", out,
    )  # fmt: skip
    assert "knowledge" in printed
    data = json.loads((out / "erase.json").read_text())
    assert [(part["questions"], part["neurons"]) for part in data["result"]] == (
        [("capitals", 4)] * 3 + [("rhyming", 4)] * 3
    )
