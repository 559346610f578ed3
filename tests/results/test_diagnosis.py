"""The checks of a machine, and the verdict on it."""

from broca.results.checks import Diagnosis, MachineCheck


def make_diagnosis(state="missing"):
    """Returns a diagnosis of two checks, the second in the given state."""
    return Diagnosis(
        checks=(MachineCheck("torch", "ok", "2.13"), MachineCheck("gates", state, "none", "mend"))
    )


def test_only_what_is_broken_stops_broca():
    """A missing feature is named, and broca can run without it."""
    assert make_diagnosis().can_run
    assert repr(make_diagnosis()).startswith("broca can run here")
    assert not make_diagnosis("broken").can_run
    assert repr(make_diagnosis("broken")).splitlines() == [
        "broca cannot run here", "2 checks; missing or broken: gates",
    ]  # fmt: skip
