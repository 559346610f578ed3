"""The report of a run includes what later commands found about the same heads."""

from dataclasses import replace

import pytest
from results.samples import make_result, make_stress
from simulated import toy_verification

import broca
from broca.errors import BadInput, OutFolderTaken
from broca.results.verification import Documents, Verdict

RESULT = make_result()
STRESSED = replace(make_stress(), model=RESULT.model, heads=RESULT.selected)


def test_what_is_of_other_heads_or_weights_does_not_count(tmp_path):
    """Results of other heads or weights leave the report, and a report leaves them out."""
    (report,) = RESULT.save(tmp_path)[1:]
    before = report.read_text()
    verification = replace(RESULT.verification, heads=("L0H0",))
    assert verification.save(tmp_path)[1].name == "verification.html"
    for unrelated in (
        replace(STRESSED, heads=("L0H0",)),
        replace(STRESSED, model=replace(STRESSED.model, fingerprint="0" * 16)),
    ):
        for saved in (unrelated, RESULT):
            saved.save(tmp_path)
            assert report.read_text() == before


def test_a_record_of_another_kind_is_refused(tmp_path):
    """A file with other content is refused, and the message has its name."""
    (tmp_path / "reproduce.json").write_text('{"schema": 1}')
    with pytest.raises(BadInput, match=r"reproduce.json' cannot be read"):
        RESULT.save(tmp_path, replace=True)
    with pytest.raises(OutFolderTaken, match="a run of the command line: choose another"):
        RESULT.save(tmp_path)


def test_later_results_write_the_report_again(tmp_path):
    """A result saved in its run's folder rewrites the report; elsewhere it has its own page."""
    report = RESULT.save(tmp_path / "run")[1]
    assert "Stress test" not in report.read_text()
    files = STRESSED.save(tmp_path / "run")
    assert [file.name for file in files] == ["stress.json", "report.html", "stress.html"]
    assert '<a href="stress.html">' in report.read_text()
    verified = replace(RESULT.verification, verdict=Verdict("specific", "it was verified"))
    files = verified.save(tmp_path / "run")
    assert [file.name for file in files] == ["verification.json", "report.html"]
    assert "it was verified" in report.read_text()
    assert f"Stress test: {STRESSED.verdict}" in report.read_text()
    files = STRESSED.save(tmp_path / "alone") + RESULT.verification.save(tmp_path / "alone")
    assert [file.name for file in files] == [
        "stress.json", "stress.html", "verification.json", "verification.html",
    ]  # fmt: skip
    assert "not verified" in files[-1].read_text()


def test_the_newest_verification_speaks_everywhere(tmp_path, monkeypatch):
    """A later verdict is the first line of the report and of what is read; it says what it was.

    A report that is written again says the same; an ablation other than the run's is noted.
    """
    searched, reported = (Documents("a", part, "a", "", (7,)) for part in ("locate", "report"))
    first = replace(toy_verification(), documents=(searched,), dropped=("L9H9",))
    run = make_result(model=first.model, task=first.task, selected=first.heads, verification=first)
    run.save(tmp_path)
    assert run.headline.startswith("toy needs")
    later = Verdict("not localized at head level", "six of them do", headline="Six do too")
    mean = replace(first.ablation, kind="mean")
    replace(first, verdict=later, documents=(reported,), ablation=mean, dropped=()).save(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "toy needs" not in page
    assert "was specific, because adding loses" in page
    assert "verdict are those of mean ablation" in page
    monkeypatch.chdir(tmp_path)
    assert broca.report(".")[0].read_text() == page.replace(tmp_path.name, ".")
    newest = broca.read(tmp_path)
    assert (newest.headline, newest.verification.was.label) == ("Six do too", "specific")
    assert newest.verification.documents == (searched, reported)
    assert newest.verification.dropped == first.dropped
