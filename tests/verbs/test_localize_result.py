"""Costs, notes and effects on other tasks in a finished localization."""

import pytest
from journals import totals

import broca
from broca.store import Journal, read_runs


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


def test_settings_identify_the_run(localization):
    """The journal has the settings of the run as plain values."""
    _, journal = localization
    with Journal(journal, read_only=True) as opened:
        (run,) = read_runs(opened)
    settings = run.settings
    assert (settings["task"], settings["method"], settings["k"]) == ("addition", "pooled", 2)
    assert settings["others"] == ["addition_words", "sorting"]
    assert settings["ablation"] == ["zero", 0.0]
    assert settings["task_options"]["limit"] == 40


def test_ranking_and_selection_fit_together(localization):
    """The ranking has all components, the selected ones first; the verification is of these."""
    result, _ = localization
    names = [component.name for component in result.ranking]
    assert len(set(names)) == 96
    assert tuple(names[: len(result.selected)]) == result.selected
    assert result.abstained == (not result.selected)
    assert set(result.off_target_effects) <= set(names)
    assert result.verification.heads == result.selected


def test_a_task_of_the_same_capability_is_noted(localization):
    """A task of the same capability has a role of its own and a note."""
    result, _ = localization
    assert result.same_skill == ("addition_words",)
    assert any("addition_words measures the same capability" in note for note in result.notes)
    roles = {line.task: line.role for line in result.verification.drops}
    assert roles == {"addition": "task", "addition_words": "same_skill", "sorting": "other"}
