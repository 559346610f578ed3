"""`broca.refit` applies another recovery to a run's rows."""

import numpy as np
import pytest
from verbs.run_folders import assert_no_model_is_loaded, localize_into

from broca.errors import BadInput, UnknownName
from broca.results.localization import Localization, Refit
from broca.verbs.refit import refit


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folders of small finished runs, by method."""
    folders = {}
    for method, rows in (("cs-stratified", 400), ("cs-fresh", 300), ("pooled", 300)):
        folders[method] = tmp_path_factory.mktemp("runs") / method
        localize_into(
            folders[method], model="planted", task="mc_biology", items=10, rows=rows, method=method,
            verify=False,
        )  # fmt: skip
    return folders


def test_the_same_recovery_gives_the_same_effects(finished):
    """A refit with the run's recovery gives the run's effects within 0.002."""
    for method, recovery in (("cs-stratified", "lasso"), ("cs-fresh", "non-positive")):
        before = Localization.read(finished[method])
        again = refit(finished[method], recovery=recovery)
        old = {component.name: component.effect for component in before.ranking}
        new = {component.name: component.effect for component in again.ranking}
        np.testing.assert_allclose([new[name] for name in old], list(old.values()), atol=2e-3)
        assert again.method == method


@pytest.mark.long
def test_pooled_runs_can_be_refitted(finished):
    """A refit of a `pooled` run ranks all 96 heads and selects at most `k`."""
    result = refit(finished["pooled"], recovery="stability", k=3)
    assert result.recovery == "stability"
    assert result.masks > 20
    assert len(result.selected) <= 3
    assert len(result.ranking) == 96


def test_a_second_refit_is_the_same_and_is_written(finished, tmp_path):
    """A second refit is equal, and the saved file reads back equal."""
    first = refit(finished["cs-stratified"], recovery="omp", resamples=5)
    assert refit(finished["cs-stratified"], recovery="omp", resamples=5) == first
    first.save(tmp_path)
    assert Refit.read(tmp_path / "refit.json") == first


def test_no_model_is_loaded(finished):
    """A refit does not import torch."""
    folder = str(finished["cs-stratified"])
    assert_no_model_is_loaded(f"broca.refit({folder!r}, recovery='omp', resamples=5)")


def test_bad_input_is_refused(finished, tmp_path):
    """A folder without a run, an unknown recovery and bad numbers are refused."""
    with pytest.raises(BadInput, match=r"holds no reproduce\.json"):
        refit(tmp_path)
    with pytest.raises(BadInput, match="`k` must be at least 1, not 0"):
        refit(finished["cs-stratified"], k=0)
    with pytest.raises(BadInput, match="`resamples` must be at least 0, not -1"):
        refit(finished["cs-stratified"], resamples=-1)
    with pytest.raises(UnknownName, match="did you mean 'lasso'"):
        refit(finished["cs-stratified"], recovery="lasoo")
