"""`broca.doctor`, as a library calls it."""

import broca


def test_a_diagnosis_says_whether_broca_can_run():
    """And has a line for what is missing."""
    diagnosis = broca.doctor()
    assert diagnosis.can_run
    assert all(check.remedy for check in diagnosis.checks if check.state == "missing")
