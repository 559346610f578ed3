"""`broca stress` prints lines or JSON, writes a page and refuses bad input."""

import json
from pathlib import Path

from cli.running import broca
from results.samples import make_stress

from broca.cli.output import show
from broca.results.stress_test import StressTest


def test_every_part_has_its_line(capsys, monkeypatch):
    """Each write, ablation, probe, reversal, positive control, verdict and page has a line."""
    monkeypatch.setenv("COLUMNS", "160")
    show(make_stress(), Path("stress.html"), json=False)
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]
    assert [row[:2] for row in rows] == [
        ["same template", "+0.50 [+0.40, +0.60]"],
        ["noise", "+0.50 [+0.40, +0.60]"],
        ["zero", "+0.50 [+0.40, +0.60]"],
        ["the last token", "+0.50 [+0.40, +0.60]"],
    ]
    assert rows[2][-2:] == ["0.40", "1 of 3"]
    assert lines[-4:] == [
        "probe 0.90 (shuffled 0.50, surface 0.50, chance 0.50)",
        "positive control +0.50 [+0.40, +0.60] nats",
        "transfers: it does",
        "report: stress.html",
    ]


def test_heads_of_a_model_are_tested_into_a_folder(tmp_path):
    """`--json` prints stress.json, beside which the page lies; a second run has nothing to do."""
    done = broca(
        "stress", "reference-small", "--heads", "L0H1+L1H2", "--pairs", 16, "--out", tmp_path,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    again = broca(
        "stress", "reference-small", "--heads", "L0H1+L1H2", "--pairs", 16, "--out", tmp_path
    )
    assert again.stderr.startswith("finished; nothing to do")
    assert f"report: {tmp_path / 'stress.html'}" in again.stdout
    assert done.stdout == (tmp_path / "stress.json").read_text()
    assert json.loads(done.stdout)["heads"] == ["L0H1", "L1H2"]
    assert StressTest.read(tmp_path).pairs == 16
    assert (tmp_path / "stress.html").is_file()
