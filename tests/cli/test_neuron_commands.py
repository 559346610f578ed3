"""`broca neurons` as a user meets it."""

import functools
import json

import pytest
from cli.running import assert_refused, broca

from broca.journal import Journal
from broca.models import load


@pytest.fixture(scope="module", autouse=True)
def _loaded_once():
    """The model is loaded once for all commands, and tables are wide enough for their words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broca.runs.setup.load", functools.cache(load))
        patch.setenv("COLUMNS", "200")
        yield


def neurons(*arguments):
    """Runs the command in this process; what it printed."""
    done = broca("neurons", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Located on few items."""
    folder = tmp_path_factory.mktemp("neurons")
    neurons("locate", "reference", "--task", "capitals", "--items", 6, "--out", folder)
    return folder


def scored(folder):
    """Vectors in the journal of an out folder."""
    with Journal(folder / "journal.sqlite", read_only=True) as journal:
        ((vectors,),) = journal.query("SELECT count(*) FROM vectors")
    return vectors


def test_locate_writes_neurons_json(out):
    """With shares, settings and the selected neurons; the scores of the items lie beside it."""
    data = json.loads((out / "neurons.json").read_text())
    assert (data["schema"], data["task"], data["items"]) == (2, "capitals", 6)
    assert (data["settings"]["sigma"], data["settings"]["steps"]) == (6.0, 19)
    assert data["model"]["neurons"] == 1536
    assert 0 < data["share_of_neurons"] < 0.05
    assert all(neuron["sigmas"] > 6 for neuron in data["selected"])
    assert scored(out) == 6


def test_a_second_run_reuses_the_scores_and_prints_the_same(out):
    """Stdout of --json is the file, byte for byte, and no item was scored again."""
    before = (out / "neurons.json").read_text()
    printed = neurons(
        "locate", "reference", "--task", "capitals", "--items", 6, "--out", out, "--json"
    )
    assert printed == before == (out / "neurons.json").read_text()
    assert scored(out) == 6


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


def test_data_files_work_as_tasks(tmp_path):
    """JSON lines of prompt and answer are located on like tasks."""
    path = tmp_path / "own.jsonl"
    rows = [{"prompt": f"compute 1{n} + 2{n} =", "answer": str(30 + 2 * n)} for n in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    neurons("locate", "reference", "--task", f"data:{path}", "--count", 3, "--out", tmp_path)
    data = json.loads((tmp_path / "neurons.json").read_text())
    assert (data["items"], len(data["selected"])) == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["locate", "reference", "--task", "capitals", "--scope", "head"], "--scope"),
        (["locate", "reference", "--task", "capitals", "--method", "cln"], "did you mean 'cnl'"),
        (["locate", "reference", "--task", "capitals", "--search", "greedyy"], "'greedy'"),
        (["locate", "reference", "--task", "capital"], "did you mean 'capitals'"),
        (["locate", "reference", "--task", "data:none", "--fields", "x"], "--fields"),
        (["reliability", "reference", "--task", "capitals", "--factors", "a"], "--factors"),
        (["fidelity", "reference", "--task", "sorting"], "no paraphrases"),
        (["cross", "reference", "--tasks", "capitals"], "two data sets"),
        (["enhance", "reference", "--task", "capitals", "--lr", 0], "--lr"),
        (["decouple", "reference", "--pairs", "nowhere.jsonl"], "--pairs"),
        (["erase", "reference", "--task", "capitals", "--methods", "x"], "'x' is unknown"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path):
    """What, why, and what to do."""
    assert_refused(broca("neurons", *arguments, "--out", tmp_path), message)
