"""The names of tables and figures have a study each."""

from broca.studies.paper.names import ALL, NAMES
from broca.studies.paper.running import EXPERIMENTS as STUDIES


def test_every_name_has_a_study_and_a_sentence():
    """Names and studies are the same, every name has a sentence, and `all` is no name."""
    assert set(NAMES) == set(STUDIES)
    assert all(NAMES.values())
    assert ALL not in NAMES
