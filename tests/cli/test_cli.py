"""`broca localize`: its result, exit codes, one-line errors and clean stdout."""

import json
import re

import pytest
from cli.running import assert_refused, broca

from broca.results.localization import Localization


def test_json_is_the_result_and_nothing_else_is_on_stdout(finished_command):
    """Stdout is result.json, byte for byte; progress is on stderr."""
    done, out = finished_command
    assert done.returncode == 0, done.stderr
    assert done.stdout == (out / "result.json").read_text()
    assert "searching" in done.stderr


def test_result_keeps_the_contract(finished_command):
    """Tasks, budget, ranking, selection and drops of the result agree."""
    _, out = finished_command
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
    first = [component.name for component in result.ranking[: len(result.selected)]]
    assert first == list(result.selected)


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
        (["reference", "--task", "addition", "--others", "addition"], "not a control of itself"),
        (["reference", "--task", "addition", "--others", "sortin"], "did you mean 'sorting'"),
        (["reference", "--task", "addition", "--option", "masks"], "NAME=VALUE"),
        (
            ["reference", "--task", "addition", "--method", "cs-fresh", "--option", "sparsty=1"],
            "did you mean 'sparsity'",
        ),
        (
            ["reference", "--task", "addition", "--method", "cs-fresh", "--option", "sparsity=2"],
            "between 0 and 1",
        ),
        (["reference", "--task", "addition", "--metric", "acc"], "no metric 'acc'"),
        (["reference", "--task", "addition", "--num-fewshot", "1001"], "--num-fewshot 1001 is mo"),
        (["reference", "--task", "addition", "--num-fewshot", "-1"], "must be at least 0"),
        (["reference", "--task", "addition", "--limit", "0"], "--limit must be"),
        (["reference", "--task", "addition", "--locate-split", "dev"], "no split 'dev'"),
        (["reference", "--task", "addition", "--chat-template"], "has no chat template"),
        (["reference", "--task", "addition", "--reference", "x"], "use own, gold or FILE.py"),
        (["reference", "--task", "addition", "--include-path", "./nope"], "is not a folder"),
        (["reference", "--task", "addition", "--out", "/dev/null/x"], "cannot be written"),
        (["reference", "--task", "addition", "--dtype", "int3"], "dtype 'int3' is unknown"),
        (["reference", "--task", "addition", "--ablation", "ones"], "--ablation 'ones' is unknown"),
        (["reference", "--task", "addition", "--scale", "1"], "--scale 1 ablates nothing"),
        (["reference", "--task", "addition", "--response", "x"], "for --response"),
        (["reference", "--task", "addition", "--components", "hats"], "did you mean 'heads'"),
        (["reference", "--task", "addition", "--components", "experts"], "no experts were found"),
        (["reference", "--task", "addition", "--share-prefixes", "x"], "for --share-prefixes"),
        (["reference", "--task", "addition", "--token-budget", "0"], "--token-budget"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    """Bad input is refused in one line with exit code 2, and stdout stays empty."""
    if "--out" not in arguments:
        arguments = [*arguments, "--out", str(tmp_path)]
    assert_refused(broca("localize", *arguments), message)


def test_task_that_the_model_cannot_do_is_refused(tmp_path):
    """A task on which the intact model scores 0 is refused."""
    data = [{"q": f"qqqqqq {n} ?", "a": f"zz{n}zz"} for n in range(16)]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(item) for item in data))
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


def test_other_components_and_ablations_run(tmp_path):
    """MLP blocks and KV groups are searched under mean ablation by margin."""
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
    assert {re.sub(r"\d+", "", line["name"]) for line in data["ranking"]} == {"LM", "LG"}
    assert len(data["ranking"]) == 4 + 12
