"""`broca export` prints a summary or JSON, writes files and refuses bad input in one line."""

from cli.running import broca
from journals import totals

from broca.results.export import Export
from broca.results.files import decode
from broca.results.reading import read
from broca.store import Journal, read_runs


def test_what_was_exported_is_said_and_written(tmp_path):
    """The command prints a summary and the folder; with `--json` it prints `export.json`."""
    done = broca("export", "reference-small", "--heads", "L0H1+L1H2", "--to", tmp_path, "--plain")
    assert done.returncode == 0, done.stderr
    assert "adapter of reference-small without L0H1, L1H2" in done.stdout
    assert "32 of 32 continuations as broca's" in done.stdout
    assert f"written to {tmp_path}" in done.stdout
    assert "loading the export again" in done.stderr
    assert (tmp_path / "adapter_config.json").is_file()
    done = broca(
        "export", "reference-small", "--heads", "L0H1", "--to", tmp_path, "--kind", "heads",
        "--scale", 0.5, "--json",
    )  # fmt: skip
    assert decode(Export, done.stdout).ablation.scale == 0.5
    assert done.stdout == (tmp_path / "export.json").read_text()


def test_the_check_of_a_run_is_kept_in_its_journal(finished, tmp_path):
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
