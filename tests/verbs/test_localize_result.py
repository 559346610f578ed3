"""Costs, notes and effects on other tasks in a finished localization."""

import pytest
from journals import totals

import broca


@pytest.fixture(scope="module")
def localization(tmp_path_factory):
    """A small localization with two other tasks, one of the same capability, and its journal."""
    journal = tmp_path_factory.mktemp("run") / "j.sqlite"
    result = broca.localize(
        broca.load("reference", device="cpu"), "addition",
        others=["addition_words", "sorting"], method="pooled", rows=700, items=8, k=2, seed=3,
        verify=False, task_options=broca.TaskOptions(limit=40), journal=journal,
    )  # fmt: skip
    return result, journal


def test_costs_are_what_the_journal_holds(localization):
    """Measured rows and tokens equal the sums in the journal, and the search keeps its budget."""
    result, journal = localization
    assert result.cost.measured == totals(journal)["rows"]
    assert result.cost.tokens == totals(journal)["tokens"]
    assert result.cost.rows <= 700
    assert result.cost.wall_s > 0


def test_ranking_and_selection_fit_together(localization):
    """The ranking has all components, the selected ones first; the verification is of these."""
    result, _ = localization
    names = [component.name for component in result.ranking]
    assert len(set(names)) == 96
    assert tuple(names[: len(result.selected)]) == result.selected
    assert result.abstained == (not result.selected)
    assert set(result.off_target_effects) <= set(names)
    assert result.verification.heads == result.selected
