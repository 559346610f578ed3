"""The command line as a user meets it: exit codes, one-line errors, clean stdout."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.running import assert_refused, broca

from broca.results.localization import Localization
from broca.searches import METHODS

SMALL = (
    "localize", "reference-small", "--task", "sorting", "--others", "capitals,brackets",
    "--rows", 600, "--items", 12, "--limit", 60,
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run of the command with --json, small."""
    out = tmp_path_factory.mktemp("run") / "out"
    done = broca(*SMALL, "--out", out, "--json")
    return done, out


def test_json_is_the_result_and_nothing_else_is_on_stdout(finished):
    """Stdout is result.json, byte for byte; progress is on stderr."""
    done, out = finished
    assert done.returncode == 0, done.stderr
    assert done.stdout == (out / "result.json").read_text()
    assert "searching" in done.stderr


def test_result_keeps_the_contract(finished):
    """Budget, tasks, ranking and drops fit together."""
    _, out = finished
    result = Localization.read(out)
    assert result.task == "sorting"
    assert result.others == ("capitals", "brackets")
    assert result.cost.rows <= 600
    assert len(result.ranking) == 48
    assert len(result.selected) <= 5
    assert set(result.baseline) == set(result.verification.after) == {
        "sorting", "capitals", "brackets",
    }  # fmt: skip
    drop = result.baseline["sorting"] - result.verification.after["sorting"]
    assert result.verification.drop == pytest.approx(drop)
    first = [one.name for one in result.ranking[: len(result.selected)]]
    assert first == list(result.selected)


def test_report_is_written(finished):
    """One page, beside the result, and no half-written file."""
    _, out = finished
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    names = {path.name for path in out.iterdir()}
    assert {"journal.sqlite", "report.html", "reproduce.json", "result.json"} <= names
    assert not [name for name in names if name.endswith(".part")]


def test_same_command_gives_the_same_bytes_apart_from_times(finished, tmp_path):
    """Same seed, same machine, same result."""
    _, out = finished
    done = broca(*SMALL, "--out", tmp_path, "--json")
    first, second = json.loads((out / "result.json").read_text()), json.loads(done.stdout)
    first["cost"].pop("wall_s"), second["cost"].pop("wall_s")
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./nowhere", "--task", "addition"], "folder './nowhere' does not exist"),
        (["reference", "--task", "additoin"], "did you mean 'addition'"),
        (["reference", "--task", "addition", "--k", "0"], "--k must be at least 1"),
        (["reference", "--task", "calls", "--others", "", "--k", "97"], "more than the 96 heads"),
        (["reference", "--task", "addition", "--rows", "0"], "--rows must be at least 1"),
        (["reference", "--task", "calls", "--others", "", "--rows", "50"], "--rows 50 is too f"),
        (["reference", "--task", "addition", "--items", "0"], "--items must be at least 1"),
        (["reference", "--task", "addition", "--method", "gredy"], "did you mean 'greedy'"),
        (["reference", "--task", "addition", "--others", "addition"], "no control of itself"),
        (["reference", "--task", "addition", "--others", "sortin"], "did you mean 'sorting'"),
        (["reference", "--task", "addition", "--option", "masks"], "NAME=VALUE"),
        (
            ["reference", "--task", "addition", "--method", "cs-fresh", "--option", "sparsty=1"],
            "did you mean 'sparsity'",
        ),
        (["reference", "--task", "addition", "--option", "gradients=no"], "true or false, not no"),
        (["reference", "--task", "addition", "--metric", "acc"], "no metric 'acc'"),
        (["reference", "--task", "addition", "--num-fewshot", "1001"], "--num-fewshot 1001 is mo"),
        (["reference", "--task", "addition", "--num-fewshot", "-1"], "must be 0 or more"),
        (["reference", "--task", "addition", "--limit", "0"], "--limit must be"),
        (["reference", "--task", "addition", "--locate-split", "dev"], "no split 'dev'"),
        (["reference", "--task", "addition", "--chat-template"], "has no chat template"),
        (["reference", "--task", "addition", "--reference", "x"], "use own, gold or FILE.py"),
        (["reference", "--task", "addition", "--include-path", "./nope"], "is not a folder"),
        (["reference", "--task", "addition", "--out", "/dev/null/x"], "cannot be written"),
        (["reference", "--task", "addition", "--dtype", "int3"], "dtype 'int3' is unknown"),
        (["reference", "--task", "addition", "--ablation", "ones"], "--ablation 'ones' is unknown"),
        (["reference", "--task", "addition", "--scale", "1"], "--scale 1 ablates nothing"),
        (["reference", "--task", "addition", "--response", "x"], "--response 'x' is unknown"),
        (["reference", "--task", "addition", "--components", "hats"], "did you mean 'heads'"),
        (["reference", "--task", "addition", "--components", "experts"], "no experts were found"),
        (["reference", "--task", "addition", "--share-prefixes", "x"], "--share-prefixes 'x'"),
        (["reference", "--task", "addition", "--token-budget", "0"], "--token-budget"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    """What, likely cause, next step; no traceback."""
    if "--out" not in arguments:
        arguments = [*arguments, "--out", str(tmp_path)]
    assert_refused(broca("localize", *arguments), message)


def test_task_that_the_model_cannot_do_is_refused(tmp_path):
    """At zero there is nothing to localize."""
    data = [{"q": f"qqqqqq {n} ?", "a": f"zz{n}zz"} for n in range(16)]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(one) for one in data))
    (tmp_path / "impossible.yaml").write_text(
        f"""
task: impossible
dataset_path: json
dataset_kwargs: {{data_files: {{test: {tmp_path / "data.jsonl"}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
generation_kwargs: {{until: ["\\n"], max_gen_toks: 4}}
metric_list: [{{metric: exact_match}}]
"""
    )
    done = broca(
        "localize", "reference", "--task", "impossible", "--include-path", tmp_path,
        "--others", "", "--out", tmp_path / "out",
    )  # fmt: skip
    assert_refused(done, "scores 0.000 on 'impossible'.*nothing to localize")


def test_a_run_can_be_verified(finished):
    """verification.json beside the result, on stdout too, and a section in the report."""
    _, out = finished
    done = broca("verify", out, "--limit", 16, "--controls", 3, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (out / "verification.json").read_text()
    data = json.loads(done.stdout)
    assert data["heads"] == list(Localization.read(out).selected)
    assert [one["task"] for one in data["drops"]] == ["sorting", "capitals", "brackets"]
    assert f"Verdict: {data['verdict']['label']}" in (out / "report.html").read_text()
    again = broca("rerun", out)  # what verify added to the run's journal is in nobody's way
    assert again.returncode == 0, again.stderr


def test_named_heads_and_neurons_can_be_verified_together(tmp_path):
    """Without a run: a page of its own, and the table; random sets hold as many of each kind."""
    done = broca(
        "verify", "reference-small", "--heads", "L0H9+L0H5", "--neurons", "L2N17",
        "--task", "sorting", "--others", "capitals", "--limit", 16, "--controls", 3,
        "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "specific" in done.stdout
    data = json.loads((tmp_path / "verification.json").read_text())
    assert data["heads"] == ["L0H9", "L0H5", "L2N17"]
    for one in data["controls"]:
        assert all(sum("N" in name for name in each["heads"]) == 1 for each in one["sets"])
    assert (tmp_path / "verification.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./nowhere"], "does not exist"),
        (["reference", "--heads", "L0H1"], "--heads and --neurons need the --task"),
        (["reference", "--heads", "H1", "--task", "addition"], "not a component name"),
        (["reference", "--heads", "L0H1", "--task", "addition", "--controls", "-1"], "--controls"),
        (["reference", "--heads", "L0H1", "--task", "addition", "--ablation", "x"], "--ablation"),
    ],
)
def test_verify_refuses_bad_input(arguments, message, tmp_path):
    """One line, exit code 2."""
    assert_refused(broca("verify", *arguments, "--out", tmp_path), message)


def test_help_names_every_method():
    """The text of --method is the table of methods."""
    done = broca("localize", "--help")
    assert done.returncode == 0
    unwrapped = "".join(done.stdout.split())  # a line may end after a hyphen of a name
    for method in METHODS:
        assert method in unwrapped


@pytest.mark.parametrize(
    "verb",
    ["localize", "scan", "tasks", "journal", "rerun", "verify", "published", "stress", "reproduce"],
)
def test_every_verb_has_help(verb):
    """Each says what it does."""
    done = broca(verb, "--help")
    assert done.returncode == 0
    assert verb in done.stdout


def test_version_is_printed():
    """`broca --version`."""
    assert re.fullmatch(r"broca \d+\.\d+\.\d+\n", broca("--version").stdout)


def test_scan_lists_components_and_the_self_test():
    """Human text and JSON say the same."""
    text = broca("scan", "reference")
    assert text.returncode == 0, text.stderr
    assert "96 heads in 6 layers, 16 query heads on 4 KV heads" in text.stdout
    assert text.stdout.count("self-test ok") == 4
    data = json.loads(broca("scan", "reference", "--json").stdout)
    assert len(data["components"]) == 96
    assert data["not_covered"] == []
    assert all(check["passed"] for check in data["self_test"])


def test_other_components_and_ablations_run(tmp_path):
    """MLP blocks and KV groups under mean ablation, searched by margin."""
    done = broca(
        "localize", "reference-small", "--task", "capitals", "--others", "sorting",
        "--method", "one-shot", "--limit", 40, "--components", "mlp+kv-groups",
        "--ablation", "mean",
        "--response", "margin", "--k", 2,
        "--items", 10, "--out", tmp_path, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["components"] == "mlp+kv-groups"
    assert data["ablation"] == {"kind": "mean", "scale": 0.0}
    assert data["response"] == "margin"
    assert {re.sub(r"\d+", "", one["name"]) for one in data["ranking"]} == {"LM", "LG"}
    assert len(data["ranking"]) == 4 + 12


def test_tasks_lists_the_shipped_tasks():
    """At least eight."""
    done = broca("tasks")
    assert "addition" in done.stdout.splitlines()
    assert len(done.stdout.splitlines()) >= 8


def test_locale_need_not_be_utf8(tmp_path):
    """The report and the table can be written under the C locale."""
    environment = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [
            sys.executable, "-c", "from broca.cli import main; main()", "localize",
            "reference-small", "--task", "sorting", "--others", "", "--method", "one-shot",
            "--items", "8", "--limit", "40", "--out", "out",
        ],
        capture_output=True, env=environment, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert Path(tmp_path, "out", "report.html").is_file()


def test_task_is_shown_as_it_is_asked():
    """`broca tasks NAME`: items, metrics and the first prompt under the same options."""
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
    assert shown["first prompt"].count("choose") == 2
    assert shown["items"] == 12 + 1000 - 10
    assert_refused(broca("tasks", "additoin"), "did you mean 'addition'")
