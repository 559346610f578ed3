"""`broca doctor` prints checks with remedies and returns an exit code."""

import json

import pytest
from cli.running import broca

import broca as library
from broca.results.checks import Diagnosis, MachineCheck

REPORTED = (
    MachineCheck("torch", "ok", "2.13.0"),
    MachineCheck("isolation", "missing", "kernel", "apt install bubblewrap"),
)


@pytest.fixture
def checks(monkeypatch):
    """The list of checks that the doctor reports; a test may add to it."""
    reported = list(REPORTED)
    monkeypatch.setattr(library, "doctor", lambda: Diagnosis(checks=tuple(reported)), raising=False)
    return reported


def test_every_check_is_a_line_and_what_mends_it_another(checks):
    """Every check and remedy has a line; a missing optional feature gives exit code 0."""
    done = broca("doctor", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "broca can run here; features marked -- are optional.",
        "ok  torch      2.13.0",
        "--  isolation  kernel",
        "               -> apt install bubblewrap",
    ]


def test_json_has_every_check(checks):
    """`--json` prints the checks with their remedies, and nothing else, on stdout."""
    data = json.loads(broca("doctor", "--json").stdout)
    assert data["kind"] == "diagnosis"
    assert data["checks"][1]["remedy"] == "apt install bubblewrap"


def test_where_broca_cannot_run_the_exit_code_is_1(checks):
    """A broken check gives exit code 1 and a line on stderr; all checks are printed."""
    checks.append(MachineCheck("gates", "broken", "no weights", "pip install broca"))
    done = broca("doctor")
    assert done.returncode == 1
    assert "ok  torch" in done.stdout
    assert "can run here;" not in done.stdout
    assert "broca: broca cannot run here (gates): follow the advice after ->" in done.stderr
