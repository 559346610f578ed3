"""The selection of another recovery on a run's measurements."""

from dataclasses import replace

from results.samples import make_result

from broca.results.localization import Refit


def make_refit():
    """Returns a refit of the small result."""
    run = make_result()
    return Refit(
        task=run.task, method="cs-stratified", recovery="ridge", response="accuracy", rows=900,
        masks=90, ranking=run.ranking, selected=run.selected, reason="", additivity=None,
    )  # fmt: skip


def test_a_refit_says_what_is_selected_now_and_from_what():
    """The summary has the selection, or the reason that nothing is selected."""
    refit = make_refit()
    first, second = refit.summary()
    assert first == f"adding: {', '.join(refit.selected)}"
    assert second == "ridge on 90 masks of cs-stratified, 900 rows"
    nothing = replace(refit, selected=(), reason="no harm")
    assert nothing.summary()[0] == "adding: nothing selected: no harm"


def test_its_table_is_the_ranking():
    """The records follow the ranking, and selected components are marked."""
    refit = make_refit()
    records = refit.records()
    assert [line["component"] for line in records] == [line.name for line in refit.ranking]
    chosen = [line["component"] for line in records if line["selected"]]
    assert set(chosen) == set(refit.selected)
