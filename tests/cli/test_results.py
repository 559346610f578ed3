"""Commands that measure print a result, keep it in their folder, and are not run twice."""

import csv
import io
import json
import re

import pytest
from cli.running import broca, printed
from verbs.neurons.small_runs import RUNS

from broca import Localization, read

COMMANDS = {
    **{
        f"neurons {verb}": (
            " ".join(
                ["reference-small --steps 4 --items 6",
                 *(f"--{name.replace('_', '-')} {value}" for name, value in options.items())]
            ),
            "neurons.json" if verb == "locate" else f"{verb}.json", ["written: "],
        )
        for verb, options in RUNS.items()
    },
    "atlas": (
        "planted --tasks rhyming,capitals --rows 400 --items 20", "atlas.json",
        ["facts", "universal", "localize", "report: ", "atlas.html"],
    ),
    "stress": (
        "reference-small --heads L0H1+L1H2 --pairs 16", "stress.json",
        ["noise", "positive control", "report: ", "stress.html"],
    ),
    "compare": (
        "reference-small reference-small --tasks capitals --rows 120 --items 12 --limit 20 "
        "--heads L0H1+L1H2", "comparison.json",
        ["the same weights", "Scores, with drops in points", "given",
         "nothing", "report: ", "comparison.html"],
    ),
    "verify": (
        "reference-small --heads L0H9+L0H5 --neurons L2N17 --task sorting --others capitals "
        "--limit 16 --controls 3",
        "verification.json", ["specific", "report: ", "verification.html"],
    ),
}  # fmt: skip
"""Small calls of the commands, with the file of the result and words of what is printed."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_its_result_and_has_nothing_to_do_again(name, tmp_path):
    """A second run measures nothing: it prints the same text, or the file with `--json`."""
    arguments, file, said = COMMANDS[name]
    command = [*name.split(), *arguments.split(), "--details", "--out", tmp_path]
    first = broca(*command, "--plain")
    assert first.returncode == 0, first.stderr
    assert all(words in first.stdout for words in (*said, str(tmp_path)))
    again, as_json = broca(*command), broca(*command, "--json")
    assert again.stdout == first.stdout
    assert as_json.stdout == (tmp_path / file).read_text()
    assert all(done.stderr.startswith("finished; nothing to do") for done in (again, as_json))
    assert read(tmp_path / file)


def test_only_the_result_is_on_stdout(finished_command):
    """Stdout is result.json, byte for byte; progress is on stderr."""
    done, out = finished_command
    assert done.returncode == 0, done.stderr
    assert done.stdout == (out / "result.json").read_text()
    assert "searching" in done.stderr
    assert len(Localization.read(out).ranking) == 48


def test_other_components_and_ablations_are_searched(tmp_path):
    """MLP blocks and KV groups are searched under mean ablation by margin, as options say."""
    data = json.loads(printed(
        "localize", "reference-small", "--task", "capitals", "--others", "sorting",
        "--method", "cs-stratified", "--option", "contrast=0", "--option", "resamples=9",
        "--option", "recovery=lasso", "--limit", 40, "--no-verify", "--components",
        "mlp+kv-groups", "--ablation", "mean", "--response", "margin", "--k", 2, "--items", 10,
        "--out", tmp_path, "--json",
    ))  # fmt: skip
    assert data["components"] == "mlp+kv-groups"
    assert data["ablation"] == {"kind": "mean", "scale": 0.0}
    assert data["response"] == "margin"
    assert {re.sub(r"\d+", "", line["name"]) for line in data["ranking"]} == {"LM", "LG"}
    assert len(data["ranking"]) == 4 + 12
    given = json.loads((tmp_path / "reproduce.json").read_text())["options"]["search_options"]
    assert given["options"] == {"contrast": 0, "resamples": 9, "recovery": "lasso"}


@pytest.mark.long
def test_a_study_prints_csv_and_is_repeated_from_the_journal(tmp_path):
    """A study writes its files and journal; a second call prints the same rows as JSON."""
    few = (
        "planted", "--tasks", "rhyming", "--rows", 400, "--items", 10, "--limit", 8, "--plain",
        "--out",
    )  # fmt: skip
    done = broca("reproduce", "table9", *few, tmp_path)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["task"] for row in rows] == ["rhyming"]
    assert "cs-stratified on rhyming" in done.stderr
    assert "table9-planted.html" in done.stderr
    names = {f"table9-planted.{end}" for end in ("json", "csv", "html")} | {"journal.sqlite"}
    assert names <= {path.name for path in tmp_path.iterdir()}
    again = json.loads(printed("reproduce", "table9", *few, tmp_path, "--json"))
    assert [row["heads"] for row in again["rows"]] == [row["heads"] for row in rows]
    several = printed("reproduce", "table9,table5", *few, tmp_path, "--json")
    assert [data["name"] for data in json.loads(several)] == ["table9", "table5"]
