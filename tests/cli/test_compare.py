"""`broca compare` prints tables or JSON, writes files and refuses bad input in one line."""

import pytest
from cli.running import assert_refused, broca

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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reference-small", *FEW], "names 1: a comparison needs two"),
        (["reference-small", "reference", *FEW], "only models of one architecture"),
        (["reference-small", "reference-small"], "give --tasks"),
        (["nowhere", "reference-small", *FEW], "model 'nowhere' is unknown"),
    ],
)
def test_bad_input_is_one_line(words, message, tmp_path):
    """Bad input is refused in one line, with parameters named as flags."""
    assert_refused(broca("compare", *words, "--out", tmp_path), message)
