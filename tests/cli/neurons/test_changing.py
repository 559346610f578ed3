"""`broca neurons erase` and its like."""

import json

import pytest
from cli.neurons.running import neurons
from cli.running import assert_refused, broca


def test_erase_compares_methods_at_equal_size(out):
    """On the task and the others; a table on stdout, everything in erase.json."""
    printed = neurons(
        "erase", "reference", "--task", "capitals", "--others", "rhyming", "--items", 6,
        "--methods", "cnl,knowledge-neurons,sensing", "--rows", 60, "--report-items", 10,
        "--draws", 1, "--count", 4, "--out", out,
    )  # fmt: skip
    assert "knowledge" in printed
    data = json.loads((out / "erase.json").read_text())
    assert [(part["questions"], part["neurons"]) for part in data["result"]] == (
        [("capitals", 4)] * 3 + [("rhyming", 4)] * 3
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reliability", "reference", "--task", "capitals", "--factors", "a"], "--factors"),
        (["cross", "reference", "--tasks", "capitals"], "two data sets"),
        (["enhance", "reference", "--task", "capitals", "--lr", 0], "--lr"),
        (["erase", "reference", "--task", "capitals", "--methods", "x"], "'x' is unknown"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path):
    """What, why, and what to do."""
    assert_refused(broca("neurons", *arguments, "--out", tmp_path), message)
