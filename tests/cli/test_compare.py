"""`broca compare` prints tables or JSON, writes files and refuses bad input in one line."""

from cli.running import broca

from broca.results.comparison import Comparison
from broca.results.files import decode

FEW = ("--tasks", "capitals", "--rows", 120, "--items", 12, "--limit", 20)


def test_tables_page_and_json(tmp_path):
    """A run prints tables and writes files; a second one measures nothing and prints JSON."""
    out = tmp_path / "out"
    words = ("compare", "reference-small", "reference-small", *FEW, "--heads", "L0H1+L1H2")
    done = broca(*words, "--out", out, "--plain")
    assert done.returncode == 0, done.stderr
    for text in (
        "0 of 48 components changed on capitals", "Scores, with drops in points", "given",
        "nothing",
        f"report: {out / 'comparison.html'}",
    ):  # fmt: skip
        assert text in done.stdout
    assert "measuring reference-small under random masks" in done.stderr
    again = broca(*words, "--out", out, "--json")
    assert again.stderr.startswith("finished; nothing to do")
    assert again.stdout == (out / "comparison.json").read_text()
    assert decode(Comparison, again.stdout).rows == 120
    assert (out / "comparison.html").is_file()
