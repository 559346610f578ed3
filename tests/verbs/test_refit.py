"""`broca.refit` applies another recovery to a run's rows."""

import pytest
from verbs.run_folders import assert_no_model_is_loaded, localize_into

from broca import Localization, Refit, refit
from broca.errors import BadInput


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folders of small finished runs, by method."""
    folders = {}
    for method, rows in (("cs-stratified", 400), ("cs-fresh", 900)):
        folders[method] = tmp_path_factory.mktemp("runs") / method
        localize_into(
            folders[method], model="reference-small", task="capitals", items=10, rows=rows,
            method=method, verify=False, report_items=10,
        )  # fmt: skip
    return folders


@pytest.mark.parametrize(
    ("method", "recovery"), [("cs-stratified", "lasso"), ("cs-fresh", "non-positive")]
)
def test_the_same_recovery_gives_the_same_effects(finished, method, recovery):
    """A refit with the run's recovery gives the run's effects within 0.002."""
    before, again = Localization.read(finished[method]), refit(finished[method], recovery=recovery)
    new = {component.name: component.effect for component in again.ranking}
    old = {component.name: component.effect for component in before.ranking}
    assert new == pytest.approx(old, abs=2e-3)
    assert again.method == method


def test_a_second_refit_is_the_same_and_is_written(finished, tmp_path):
    """A second refit is equal, and the saved file reads back equal."""
    call = {"recovery": "omp", "resamples": 5, "interactions": True}
    first = refit(finished["cs-fresh"], **call)
    assert refit(finished["cs-fresh"], **call) == first
    first.save(tmp_path)
    assert Refit.read(tmp_path / "refit.json") == first
    assert first.interactions.says.capitalize() in (tmp_path / "refit.html").read_text()


def test_no_model_is_loaded(finished):
    """A refit does not import torch."""
    folder = str(finished["cs-stratified"])
    assert_no_model_is_loaded(f"broca.refit({folder!r}, recovery='omp', resamples=5)")


def test_components_that_were_ablated_alone_are_not_refitted(tmp_path):
    """Single components leave a regression nothing to tell apart."""
    localize_into(
        tmp_path, model="reference-small", task="capitals", items=4, rows=200, method="one-shot",
        verify=False, report_items=10,
    )  # fmt: skip
    with pytest.raises(BadInput, match="ablated components alone"):
        refit(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recovery": "lasoo"}, "did you mean 'lasso'"),
        ({"k": 49}, "`k` 49 is more than the 48 heads of the model"),
    ],
)
def test_bad_options_are_refused(finished, options, message):
    """An unknown recovery and a bad number are refused."""
    with pytest.raises(BadInput, match=message):
        refit(finished["cs-stratified"], **options)
