"""`broca tasks` lists the tasks, or describes a task."""

import json

from cli.running import assert_refused, broca


def test_tasks_lists_the_shipped_tasks():
    """The list has `addition` and at least eight tasks."""
    done = broca("tasks")
    assert "addition" in done.stdout.splitlines()
    assert len(done.stdout.splitlines()) >= 8
    data = json.loads(broca("tasks", "--json").stdout)
    assert (data["kind"], data["shipped"][0]) == ("task list", "addition")
    assert data["groups"]["general"] == ["hellaswag", "boolq", "arc_challenge", "mmlu"]


def test_task_is_shown_as_it_is_asked():
    """`broca tasks NAME` shows items, metrics and the first prompt under the given options."""
    done = broca(
        "tasks",
        "mc_biology",
        "--num-fewshot",
        1,
        "--limit",
        12,
        "--locate-split",
        "train",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["metrics"] == ["acc"]
    assert shown["chance"] == 0.25
    assert shown["first_prompt"].count("choose") == 2
    assert shown["items"] == 12 + 1000 - 10
    assert_refused(broca("tasks", "additoin"), "did you mean 'addition'")


def test_paper_tasks_are_listed_with_their_metrics():
    """The lines of the paper's tasks have their metrics and, for code, `--allow-code`."""
    lines = broca("tasks").stdout.splitlines()
    assert "gsm8k (lm-eval's, math: exact_match,flexible-extract)" in lines
    assert "mbpp (lm-eval's, code: pass_at_1, --allow-code)" in lines
    assert "rhyme (for chat models)" in lines
    assert "general (for --others: hellaswag, boolq, arc_challenge, mmlu)" in lines


def test_groups_of_a_folder_are_listed(tmp_path):
    """Tasks and groups of `--include-path` are listed."""
    (tmp_path / "one.yaml").write_text("task: one\ndataset_path: json\ntag: marked\n")
    (tmp_path / "all.yaml").write_text("group: all\ntask: [one]\n")
    lines = broca("tasks", "--include-path", tmp_path).stdout.splitlines()
    assert "one (of the folder)" in lines
    assert "all (group of the folder)" in lines
    assert "marked (group of the folder)" in lines
