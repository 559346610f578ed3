"""`broca refit` prints the new ranking, writes `refit.json` and refuses bad input."""

import json

from cli.running import broca

from broca.results.localization import Refit


def test_the_new_ranking_is_a_table_and_a_file(finished, tmp_path):
    """The table has the leading component, the selection follows, and the file is written."""
    done = broca(
        "refit", finished, "--recovery", "ridge", "--k", 2, "--resamples", 5, "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    result = Refit.read(tmp_path / "refit.json")
    assert f"ridge on {result.masks:,} masks of pooled" in done.stdout
    leading = result.ranking[0]
    shown = [line.split() for line in done.stdout.splitlines()]
    assert any({leading.name, f"{leading.effect:+.4f}"} <= set(words) for words in shown)
    if result.selected:
        assert f"selected for sorting: {', '.join(result.selected)}" in done.stdout
    else:
        assert f"No heads selected: {result.reason}." in done.stdout
    assert f"written: {tmp_path / 'refit.json'}" in done.stdout


def test_json_is_the_result(finished):
    """`--json` prints only the result on stdout and writes no file."""
    done = broca("refit", finished, "--resamples", 0, "--json")
    data = json.loads(done.stdout)
    assert (data["kind"], data["recovery"], data["method"]) == ("refit", "lasso", "pooled")
    assert not (finished / "refit.json").exists()
