"""`broca verify` verifies a run or named components."""

import json

from cli.running import SMALL, broca

from broca.results.localization import Localization


def test_a_run_can_be_verified(finished):
    """The verification is written, printed and added to the report; the run stays finished."""
    done = broca("verify", finished, "--limit", 16, "--controls", 3, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (finished / "verification.json").read_text()
    data = json.loads(done.stdout)
    assert data["heads"] == list(Localization.read(finished).selected)
    assert [drop["task"] for drop in data["drops"]] == ["sorting", "capitals", "brackets"]
    assert f">{data['verdict']['label']}</span>" in (finished / "report.html").read_text()
    before = (finished / "finished.json").read_bytes()
    again = broca("verify", finished, "--limit", 16, "--controls", 3, "--json")
    assert again.stderr.startswith(f"finished; nothing to do: {finished / 'verification.json'}")
    assert again.stdout == done.stdout
    assert (finished / "finished.json").read_bytes() == before
    again = broca(*SMALL, "--out", finished)  # the new section in the report does not matter
    assert again.stderr.startswith("finished; nothing to do")
    again = broca("rerun", finished)  # the rows that verify added to the journal do not matter
    assert again.returncode == 0, again.stderr


def test_named_heads_and_neurons_can_be_verified_together(tmp_path):
    """The command writes a page; random sets have as many components of each kind."""
    done = broca(
        "verify", "reference-small", "--heads", "L0H9+L0H5", "--neurons", "L2N17",
        "--task", "sorting", "--others", "capitals", "--limit", 16, "--controls", 3,
        "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "specific" in done.stdout
    data = json.loads((tmp_path / "verification.json").read_text())
    assert data["heads"] == ["L0H9", "L0H5", "L2N17"]
    for control in data["controls"]:
        sets = [drawn["heads"] for drawn in control["sets"]]
        assert all(sum("N" in name for name in heads) == 1 for heads in sets)
    assert (tmp_path / "verification.html").is_file()
