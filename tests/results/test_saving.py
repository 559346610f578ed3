"""The report of a run includes what later commands found about the same heads."""

from dataclasses import replace

import pytest
from results.samples import make_result
from simulated import toy_verification

import broca
from broca.results.reading import read
from broca.results.verification import Documents, Verdict
from broca.verbs.stress import stress


@pytest.fixture(scope="module")
def result(planted):
    """A small run that selects components."""
    return broca.localize(
        planted, task="sorting", others=[], method="one-shot", rows=970, items=10, k=2, verify=False
    )


@pytest.fixture(scope="module")
def stressed(planted, result):
    """A stress test of the selected components."""
    return stress(planted, heads=result, pairs=16, sets=1)


def test_what_is_of_other_heads_or_weights_does_not_count(result, stressed, tmp_path):
    """Results of other heads or weights leave the report, and a report leaves them out."""
    (report,) = result.save(tmp_path)[1:]
    before = report.read_text()
    verification = replace(result.verification, heads=("L0H0",))
    assert verification.save(tmp_path)[1].name == "verification.html"
    for unrelated in (
        replace(stressed, heads=("L0H0",)),
        replace(stressed, model=replace(stressed.model, fingerprint="0" * 16)),
    ):
        for saved in (unrelated, result):
            saved.save(tmp_path)
            assert report.read_text() == before


def test_files_of_another_kind_are_refused(result, tmp_path):
    """A file with other content is refused, and the message has its name."""
    (tmp_path / "stress.json").write_text('{"schema": 1}')
    with pytest.raises(broca.BrocaError, match=r"stress\.json' is not a stress test of broca"):
        result.save(tmp_path)


def test_later_results_write_the_report_again(result, stressed, tmp_path):
    """A result saved in its run's folder rewrites the report; elsewhere it has its own page."""
    report = result.save(tmp_path / "run")[1]
    assert "Stress test" not in report.read_text()
    files = stressed.save(tmp_path / "run")
    assert [file.name for file in files] == ["stress.json", "report.html", "stress.html"]
    assert '<a href="stress.html">' in report.read_text()
    verified = replace(result.verification, verdict=Verdict("specific", "it was verified"))
    files = verified.save(tmp_path / "run")
    assert [file.name for file in files] == ["verification.json", "report.html"]
    assert "it was verified" in report.read_text()
    assert f"Stress test: {stressed.verdict}" in report.read_text()
    files = stressed.save(tmp_path / "alone") + result.verification.save(tmp_path / "alone")
    assert [file.name for file in files] == [
        "stress.json", "stress.html", "verification.json", "verification.html",
    ]  # fmt: skip
    assert "not verified" in files[-1].read_text()


def test_the_newest_verification_speaks_everywhere(tmp_path):
    """A later verdict is the first line of the report and of what is read; it says what it was."""
    searched, reported = (Documents("a", part, "a", "", (7,)) for part in ("locate", "report"))
    first = replace(toy_verification(), documents=(searched,))
    run = make_result(model=first.model, task=first.task, selected=first.heads, verification=first)
    run.save(tmp_path)
    assert run.headline.startswith("toy needs")
    later = Verdict("not localized at head level", "six of them do", headline="Six do too")
    replace(first, verdict=later, documents=(reported,)).save(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "toy needs" not in page
    assert "was specific, because adding loses" in page
    newest = read(tmp_path)
    assert (newest.headline, newest.verification.was.label) == ("Six do too", "specific")
    assert newest.verification.documents == (searched, reported)
