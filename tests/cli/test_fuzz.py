"""Any command line ends with a known exit code, and none with a traceback."""

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import broca.models
import broca.runs.session
from broca.cli import main
from broca.errors import UnknownName

WORDS = st.sampled_from(
    [
        "localize", "journal", "rerun", "tasks", "scan", "reference", "addition", "--task", "--k",
        "--rows", "--items", "--seed", "--out", "--others", "--method", "--option", "--scale",
        "--keep-outputs", "--fresh", "--resume", "--journal", "--check", "--export", "--json",
        "--prune", "--forget",
        "--from-scratch", "--offline", "--token-budget", "--response", "--limit", "--include-path",
        "x=1", "=", "-1", "0", "3", "nan", "1e999", "", "..", "/dev/null", "result.json", "\udcff",
    ]
) | st.text(max_size=6).filter(lambda text: "\0" not in text)  # fmt: skip


@pytest.fixture
def no_models(monkeypatch, tmp_path):
    """Makes every model unknown, so that commands end before a model is loaded."""

    def unknown(*_, **__):
        raise UnknownName("no models here")

    monkeypatch.setattr(broca.runs.session, "load", unknown)
    monkeypatch.setattr(broca.models, "load", unknown)
    monkeypatch.chdir(tmp_path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    verb=st.sampled_from(["localize", "journal", "rerun", "scan", "localize reference --task a"]),
    words=st.lists(WORDS, max_size=6),
)
def test_any_words_end_in_a_known_exit_code(no_models, verb, words):
    """Any words raise only `SystemExit`, with a documented exit code."""
    before = sys.argv
    sys.argv = ["broca", *verb.split(), *words]
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    assert end.value.code in (0, 1, 2, 130)
