"""Commands on a finished run: `verify`, `rerun`, `refit` and `export`."""

import json

import pytest
from cli.running import SMALL, broca, printed
from journals import totals
from verbs.run_folders import raise_largest_effect

from broca import Export, Localization, Refit, read
from broca.results.files import decode
from broca.store import Journal, read_runs


def test_a_run_is_verified(finished):
    """It is named by a file; the verification is printed, written and added to the report."""
    command = ("verify", finished / "result.json", "--limit", 16, "--controls", 3, "--json")
    first = printed(*command)
    assert first == (finished / "verification.json").read_text()
    data = json.loads(first)
    assert data["heads"] == list(Localization.read(finished).selected)
    assert [drop["task"] for drop in data["drops"]] == ["sorting", "capitals", "brackets"]
    report = (finished / "report.html").read_text()
    assert f">{data['verdict']['label']}" in report
    assert "<dt>Command</dt><dd><code>broca localize reference-small --task sorting" in report
    before = (finished / "finished.json").read_bytes()
    again = broca(*command)
    assert again.stderr.startswith(f"finished; nothing to do: {finished / 'verification.json'}")
    assert again.stdout == first
    assert (finished / "finished.json").read_bytes() == before
    again = broca(*SMALL, "--out", finished)  # the new section in the report does not matter
    assert again.stderr.startswith("finished; nothing to do")
    printed("rerun", finished)  # the rows that verify added to the journal do not matter


def test_a_result_is_shown_whether_it_can_be_claimed_or_not(finished):
    """The claim of a finished run is written or refused, below the same result."""
    done = broca(*SMALL, "--claim", "--out", finished)
    assert "sorting" in done.stdout
    assert (done.returncode == 0) == (finished / "claim.json").is_file()
    assert "can be claimed" in done.stderr or done.returncode == 0
    (finished / "claim.json").unlink(missing_ok=True)


@pytest.mark.long
def test_a_run_is_repeated(finished):
    """A rerun prints `identical`, or what still agrees and exit code 1."""
    assert printed("rerun", finished) == "identical\n"
    raise_largest_effect(finished)
    done = broca("rerun", finished)
    assert done.returncode == 1
    assert "different" in done.stdout
    assert "was not reproduced" in done.stderr


def test_a_run_is_refitted(finished, tmp_path):
    """The selection comes first, and the file is written."""
    refit = ("refit", finished, "--recovery", "ridge", "--k", 2, "--resamples", 5)
    text = printed(*refit, "--out", tmp_path)
    result = Refit.read(tmp_path / "refit.json")
    assert len(result.ranking) == 48
    assert len(result.selected) <= 2
    found = ", ".join(result.selected) or f"nothing selected: {result.reason}"
    assert text.startswith(f"sorting: {found}\n")
    assert f"written: {tmp_path / 'refit.json'}" in text
    data = json.loads(printed("refit", finished, "--resamples", 0, "--json"))
    assert (data["kind"], data["recovery"], data["method"]) == ("refit", "lasso", "pooled")
    assert not (finished / "refit.json").exists()


def test_heads_are_exported(tmp_path):
    """The command prints a summary and the folder; with `--json` it prints `export.json`."""
    command = ("export", "reference-small", "--heads", "L0H1+L1H2", "--to", tmp_path)
    done = broca(*command, "--plain")
    assert done.returncode == 0, done.stderr
    assert "adapter of reference-small without L0H1, L1H2" in done.stdout
    assert "32 of 32 continuations as broca's" in done.stdout
    assert f"written to {tmp_path}" in done.stdout
    assert "loading the export again" in done.stderr
    assert (tmp_path / "adapter_config.json").is_file()
    scaled = printed(*command, "--kind", "heads", "--scale", 0.5, "--json")
    assert decode(Export, scaled).ablation.scale == 0.5
    assert scaled == (tmp_path / "export.json").read_text()


@pytest.mark.long
def test_the_check_of_an_export_is_kept_in_the_journal_of_the_run(finished, tmp_path):
    """The rows of `--check` are added to the run's journal and measured once."""
    rows = []
    for _ in range(2):
        done = broca(
            "export", finished, "--to", tmp_path / "out", "--kind", "heads", "--check",
            "--limit", 5,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "cannot be resumed" not in done.stderr
        with Journal(finished / "journal.sqlite", read_only=True) as journal:
            rows.append(totals(journal))
            *_, last = read_runs(journal)
        assert last.settings["checks"] == list(read(finished).selected)
    assert rows[0] == rows[1]
