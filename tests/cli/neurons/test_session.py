"""What the neuron commands do alike."""

import json

import pytest
from cli.neurons.running import neurons, scored
from verbs.neurons.small_runs import RUNS


def test_a_second_run_reuses_the_scores_and_prints_the_same(out):
    """Stdout of --json is the file, byte for byte, and no item was scored again."""
    before, vectors = (out / "neurons.json").read_text(), scored(out)
    printed = neurons(
        "locate", "reference", "--task", "capitals", "--items", 6, "--out", out, "--json"
    )
    assert printed == before == (out / "neurons.json").read_text()
    assert scored(out) == vectors


def test_data_files_work_as_tasks(tmp_path):
    """JSON lines of prompt and answer are located on like tasks."""
    path = tmp_path / "own.jsonl"
    rows = [{"prompt": f"compute 1{n} + 2{n} =", "answer": str(30 + 2 * n)} for n in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    neurons("locate", "reference", "--task", f"data:{path}", "--count", 3, "--out", tmp_path)
    data = json.loads((tmp_path / "neurons.json").read_text())
    assert (data["items"], len(data["selected"])) == (2, 3)


@pytest.mark.parametrize("verb", RUNS)
def test_a_command_given_twice_prints_the_same(verb, tmp_path):
    """The repeated command reads its file: the same tables, and with --json the file's text."""
    words = [word for name, value in RUNS[verb].items() for word in (f"--{name}", value)]
    words = [str(word).replace("_", "-") if number % 2 == 0 else word
             for number, word in enumerate(words)]  # fmt: skip
    items = [] if verb == "fidelity" else ["--items", 6]
    command = [verb, "reference-small", *words, *items, "--steps", 4, "--out", tmp_path]
    first = neurons(*command)
    assert neurons(*command) == first
    file = tmp_path / ("neurons.json" if verb == "locate" else f"{verb}.json")
    assert str(file) in first
    assert neurons(*command, "--json") == file.read_text()
