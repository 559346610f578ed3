"""The names of tables and figures are those that can be repeated."""

from broca.studies.paper.names import ALL, NAMES
from broca.studies.paper.running import EXPERIMENTS as STUDIES


def test_every_name_has_a_study_and_a_sentence():
    """And none is missing; `all` names none of its own."""
    assert set(NAMES) == set(STUDIES)
    assert all(NAMES.values())
    assert ALL not in NAMES
