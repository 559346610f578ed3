"""Commands that measure nothing: their lines, and the same as JSON."""

import json

from cli.running import assert_refused, broca, printed
from journals import filled, observed
from results.samples import make_result

import broca as library
from broca.results.checks import Diagnosis, MachineCheck
from broca.searches import METHODS
from broca.store import Journal


def test_tasks_are_listed_with_what_they_need():
    """Shipped tasks have a line; those of the paper have metrics and, for code, `--allow-code`."""
    lines = printed("tasks").splitlines()
    assert {
        "addition        sums of two numbers up to 99: compute 29 + 81 = 110",
        "gsm8k (lm-eval's, math: exact_match,flexible-extract)",
        "mbpp (lm-eval's, code: pass_at_1, executes code)",
        "rhyme           a word that rhymes with another (for chat models)",
        "general (the paper's group, as other tasks: hellaswag, boolq, arc_challenge, mmlu)",
    } <= set(lines)
    data = json.loads(printed("tasks", "--json"))
    assert set(data["sentences"]) == {*data["shipped"], *data["instruct"]}
    assert (data["kind"], data["shipped"][0]) == ("task list", "addition")
    assert data["groups"]["general"] == ["hellaswag", "boolq", "arc_challenge", "mmlu"]


def test_tasks_of_a_folder_are_listed(tmp_path):
    """Tasks and groups of `--include-path` are listed, control characters of the file as codes."""
    (tmp_path / "one.yaml").write_text("task: one\ndataset_path: json\ntag: marked\n")
    (tmp_path / "red.yaml").write_text('task: "r\\e[31md"\ndataset_path: json\n')
    (tmp_path / "all.yaml").write_text("group: all\ntask: [one]\n")
    lines = printed("tasks", "--include-path", tmp_path).splitlines()
    listed = {"one (of the folder)", "all (group of the folder)", "marked (group of the folder)"}
    assert {*listed, r"r\x1b[31md (of the folder)"} <= set(lines)


def test_a_task_is_shown_as_it_is_asked():
    """`broca tasks NAME` shows items, metrics and the first prompt under the given options."""
    asked = ("mc_biology", "--num-fewshot", 1, "--limit", 12, "--locate-split", "train")
    shown = json.loads(printed("tasks", *asked, "--json"))
    assert (shown["metrics"], shown["chance"]) == (["acc"], 0.25)
    assert shown["first_prompt"].count("choose") == 2
    assert shown["items"] == 12 + 1000 - 10
    assert_refused(broca("tasks", "additoin"), "did you mean 'addition'")
    assert_refused(broca("tasks", *asked[1:]), "these options are those of one task: name it")


def test_published_lists_have_a_line_each():
    """A line has the name and the heads of a list, and notes come last; `--model` chooses."""
    lines, lists = printed("published").splitlines(), library.published_lists()
    assert [line.split() for line in lines[: len(lists)]] == [
        [heads.name, *heads.heads] for heads in lists
    ]
    assert all(line.startswith("note: ") for line in lines[len(lists) :])
    shown = json.loads(printed("published", "--model", "llama-3.1-8b", "--json"))
    assert [(line["name"], tuple(line["heads"])) for line in shown] == [
        (heads.name, heads.heads) for heads in library.published_lists("llama-3.1-8b")
    ]


def test_a_scan_lists_components_and_the_self_test():
    """The text and the JSON agree on the number of components and on the self-test."""
    text = printed("scan", "reference")
    assert "96 heads in 6 layers, 16 query heads on 4 KV heads" in text
    assert text.count("self-test ok") == 4
    data = json.loads(printed("scan", "reference", "--json"))
    assert (data["kind"], len(data["components"])) == ("scan", 96)


def test_a_plan_has_a_line_for_each_method():
    """A method has its rows or the reason why it cannot run; a last line states the timing."""
    few = ("--others", "capitals", "--items", 8, "--sample", 4, "--rows", 300)
    text = printed("plan", "reference-small", "--task", "sorting", *few)
    assert "search for sorting in reference-small: 48 components" in text
    assert set(METHODS) <= set(text.split())
    assert "too few" in text
    assert "from 8 timed rows" in text


def test_the_doctor_has_a_line_for_each_check_and_remedy(monkeypatch):
    """A missing optional feature is no error; a broken check is exit code 1 and a line."""
    checks = [
        MachineCheck("torch", "ok", "2.13.0"),
        MachineCheck("isolation", "missing", "kernel", "apt install bubblewrap"),
    ]
    monkeypatch.setattr(library, "doctor", lambda: Diagnosis(checks=tuple(checks)), raising=False)
    done = broca("doctor", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "broca can run here; features marked -- are optional.",
        "ok  torch      2.13.0",
        "--  isolation  kernel",
        "               -> apt install bubblewrap",
    ]
    data = json.loads(printed("doctor", "--json"))
    assert (data["kind"], data["checks"][1]["remedy"]) == ("diagnosis", "apt install bubblewrap")
    checks.append(MachineCheck("gates", "broken", "no weights", "pip install broca"))
    done = broca("doctor")
    assert done.returncode == 1
    assert "ok  torch" in done.stdout
    assert "can run here;" not in done.stdout
    assert "broca: broca cannot run here (gates): follow the advice after ->" in done.stderr


def test_a_journal_is_shown_and_exported(tmp_path):
    """The text and the JSON have the numbers of rows and of vectors by kind, and the runs.

    `--export` writes a line for each row, to a .csv file alone.
    """
    file, table = tmp_path / "journal.sqlite", tmp_path / "rows.csv"
    with Journal(file) as journal:
        run, *_ = filled(journal)
        observed(journal, run)
        journal.finish_run(run)
    shown = printed("journal", file)
    assert "12 rows" in shown
    assert "attribution: 5 vectors" in shown
    assert "run 1: no task by verify: 12 rows measured, 12 tokens, finished" in shown
    assert json.loads(printed("journal", file, "--json"))["vectors"] == {"attribution": 5}
    assert_refused(broca("journal", tmp_path / "none.sqlite"), "does not exist")
    written = json.loads(printed("journal", tmp_path, "--export", table, "--json"))
    assert written == {"rows": 12, "file": str(table)}
    assert len(table.read_text().splitlines()) == 1 + 12
    refused = broca("journal", tmp_path, "--export", tmp_path / "rows.txt")
    assert_refused(refused, "must end in .csv")


def test_figures_and_an_index_are_written(tmp_path):
    """`broca report` prints the files of the figures, `broca view` that of the index."""
    make_result().save(tmp_path / "run")
    figures = ("--figures", tmp_path / "f", "--format", "svg", "--width", "column")
    files = printed("report", tmp_path / "run", *figures).split()
    assert files == [str(tmp_path / "f" / f"{name}.svg") for name in ("components", "scores")]
    index = printed("view", tmp_path, "--out", tmp_path).strip()
    assert index == f"index: {tmp_path / 'broca-index.html'}"
