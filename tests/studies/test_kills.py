"""After SIGKILL in the middle of a reproduction, the same call ends with the same result."""

from functools import partial

import pytest
from dying import killed_in_stage
from journals import totals

import broca

FEW = {"tasks": "rhyming,capitals", "rows": 300, "items": 10, "limit": 8, "keep_universal": True}


@pytest.mark.long
def test_a_killed_reproduction_goes_on_with_the_same_result(planted, tmp_path):
    """The resumed call keeps the killed call's rows; its table equals an undisturbed call's."""
    journal = tmp_path / "journal.sqlite"
    call = partial(broca.reproduce, "table2", planted, **FEW, journal=journal)
    killed_in_stage(call, "cs-stratified on capitals")

    def rows(path):
        return totals(path)["rows"]

    before = rows(journal)
    undisturbed = broca.reproduce("table2", planted, **FEW, journal=tmp_path / "whole.sqlite")
    assert 0 < before < rows(tmp_path / "whole.sqlite")
    assert call() == undisturbed
    assert rows(journal) == rows(tmp_path / "whole.sqlite")
