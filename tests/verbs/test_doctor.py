"""`broca.doctor` called from Python."""

import broca


def test_a_diagnosis_says_whether_broca_can_run():
    """A diagnosis finds that broca can run here, and has a remedy for each missing part."""
    diagnosis = broca.doctor()
    assert diagnosis.can_run
    assert all(check.remedy for check in diagnosis.checks if check.state == "missing")
