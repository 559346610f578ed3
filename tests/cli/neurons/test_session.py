"""What the neuron commands do alike."""

import json

from cli.neurons.running import neurons, scored


def test_a_second_run_reuses_the_scores_and_prints_the_same(out):
    """Stdout of --json is the file, byte for byte, and no item was scored again."""
    before = (out / "neurons.json").read_text()
    printed = neurons(
        "locate", "reference", "--task", "capitals", "--items", 6, "--out", out, "--json"
    )
    assert printed == before == (out / "neurons.json").read_text()
    assert scored(out) == 6


def test_data_files_work_as_tasks(tmp_path):
    """JSON lines of prompt and answer are located on like tasks."""
    path = tmp_path / "own.jsonl"
    rows = [{"prompt": f"compute 1{n} + 2{n} =", "answer": str(30 + 2 * n)} for n in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    neurons("locate", "reference", "--task", f"data:{path}", "--count", 3, "--out", tmp_path)
    data = json.loads((tmp_path / "neurons.json").read_text())
    assert (data["items"], len(data["selected"])) == (2, 3)
