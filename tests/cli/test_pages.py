"""The report of a run gains what later commands found about its heads, and only that."""

from dataclasses import replace

import pytest

import broca
from broca.cli.pages import write_report
from broca.results.stress_test import StressTest
from broca.stress_tests.families import load_family
from broca.stress_tests.measure import stress
from broca.verbs.verify import verify_heads
from broca.verification import Scope


@pytest.fixture(scope="module")
def result(planted):
    """A small run that selects something."""
    return broca.localize(
        planted, task="sorting", others=[], method="one-shot", rows=970, items=10, k=2, verify=False
    )


@pytest.fixture(scope="module")
def stressed(planted, result):
    """A stress test of what it selected."""
    return stress(
        planted, result.selected, load_family("letters"), controls=[load_family("sums")],
        count=16, sets=1,
    )  # fmt: skip


def test_a_stress_test_is_summed_up_and_linked(result, stressed, tmp_path):
    """With its verdict; the record reads back equal; without the file there is no section."""
    page = write_report(result, tmp_path)
    assert "Stress test" not in page.read_text()
    (tmp_path / "stress.json").write_text(stressed.to_json())
    assert StressTest.read(tmp_path / "stress.json") == stressed
    html = write_report(result, tmp_path).read_text()
    assert f"Stress test: {stressed.verdict}" in html
    assert '<a href="stress.html">' in html


def test_what_is_of_other_heads_or_weights_does_not_count(result, stressed, tmp_path):
    """A file that an earlier run left in the folder."""
    for other in (replace(stressed, heads=("L0H0",)), replace(stressed, fingerprint="0" * 16)):
        (tmp_path / "stress.json").write_text(other.to_json())
        assert "Stress test" not in write_report(result, tmp_path).read_text()


def test_a_verification_stays_when_the_stress_test_comes(planted, result, stressed, tmp_path):
    """Both are in the report, whichever came first."""
    evidence = verify_heads(
        planted, task="sorting", heads=result.selected, others=[], limit=8,
        scope=Scope(controls=0, curve=0, failure_items=4, resamples=50),
    )  # fmt: skip
    (tmp_path / "verification.json").write_text(evidence.to_json())
    (tmp_path / "stress.json").write_text(stressed.to_json())
    html = write_report(result, tmp_path).read_text()
    assert evidence.verdict.text.split(":")[0] in html
    assert "Stress test" in html


def test_files_that_are_none_are_refused(result, tmp_path):
    """In one line that names the file."""
    (tmp_path / "stress.json").write_text('{"schema": 1}')
    with pytest.raises(broca.BrocaError, match=r"stress\.json' is not a stress test of broca"):
        write_report(result, tmp_path)
