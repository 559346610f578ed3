"""`broca localize`: `--option` and the printed result."""

from dataclasses import replace
from pathlib import Path

from results.samples import make_result

from broca.cli.find import settings_from
from broca.cli.output import show
from broca.results.verification import Verdict


def test_options_are_read_as_what_they_are():
    """Values are read as numbers, booleans or words, and names with underscores."""
    pairs = ["masks=12", "cost=0.5", "design=bernoulli", "gradients=false", "warm-up=True"]
    assert settings_from(pairs) == {
        "masks": 12, "cost": 0.5, "design": "bernoulli", "gradients": False, "warm_up": True,
    }  # fmt: skip


def test_the_verdict_leads_and_an_abstention_has_no_table(capsys, monkeypatch):
    """The headline and the verdict come first; an abstention prints only its reason."""
    monkeypatch.setenv("COLUMNS", "160")
    result = make_result()
    verdict = Verdict(
        "partly specific", "adding loses 96 points.", headline="Ablating L1H2 costs 96"
    )
    verified = replace(result.verification, verdict=verdict)
    show(replace(result, verification=verified), Path("report.html"), json=False)
    first, second, *others = capsys.readouterr().out.splitlines()
    assert (first, second) == (
        "Ablating L1H2 costs 96.",
        "partly specific: adding loses 96 points.",
    )
    text = "\n".join(others)
    for row in ("largest of the others: sorting", "specific to adding", "points lost"):
        assert row in text
    nothing = make_result(selected=(), abstained=True, reason="no harm is sure")
    show(nothing, Path("report.html"), json=False)
    text = capsys.readouterr().out
    assert "Nothing was selected: no harm is sure." in text
    assert "0.975" not in text
    assert "points lost" not in text
