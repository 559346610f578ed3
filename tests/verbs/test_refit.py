"""Another recovery on a run's rows."""

import json

import numpy as np
import pytest
from cli.running import assert_refused, broca

from broca.errors import BadInput
from broca.results.localization import Localization
from broca.verbs.refit import refit

ASKED = ("--task", "mc_biology", "--others", "", "--items", 10, "--no-verify")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Out folders of small runs, by method."""
    folders = {}
    for method, rows in (("cs-stratified", 400), ("cs-fresh", 300), ("focus", 300)):
        out = tmp_path_factory.mktemp("runs") / method
        done = broca(
            "localize", "planted", *ASKED, "--method", method, "--rows", rows, "--out", out
        )
        assert done.returncode == 0, done.stderr
        folders[method] = out
    return folders


def test_the_same_recovery_gives_the_same_effects(finished):
    """A shift of all responses moves no coefficient; order of masks and resamples are the run's."""
    for method, recovery in (("cs-stratified", "lasso"), ("cs-fresh", "non-positive")):
        before = Localization.read(finished[method])
        again = refit(finished[method], recovery=recovery)
        old = {one.name: one.effect for one in before.ranking}
        new = {one.name: one.effect for one in again.ranking}
        np.testing.assert_allclose([new[name] for name in old], list(old.values()), atol=2e-3)
        assert again.method == method


def test_focus_runs_can_be_refitted(finished):
    """From the rows of its task in its screening's response."""
    found = refit(finished["focus"], recovery="stability", k=3)
    assert found.recovery == "stability"
    assert found.masks > 20
    assert len(found.selected) <= 3
    assert len(found.ranking) == 96


def test_no_model_is_loaded(finished, tmp_path):
    """Not even torch; the result is written and printed."""
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from broca.cli.refit import refit\n"
        f"refit({str(finished['cs-stratified'])!r}, recovery='omp', k=None, resamples=5, "
        f"out={str(tmp_path / 'new')!r}, json=True)\n"
        "assert not {'torch', 'transformers', 'lm_eval'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "new" / "refit.json").read_text()
    assert done.stdout == written
    assert json.loads(written)["recovery"] == "omp"


def test_bad_input_is_refused(finished, tmp_path):
    """A folder without a run, an unknown recovery, a k of nothing."""
    with pytest.raises(BadInput, match=r"holds no reproduce\.json"):
        refit(tmp_path)
    with pytest.raises(BadInput, match="--k must be at least 1"):
        refit(finished["cs-stratified"], k=0)
    assert_refused(
        broca("refit", finished["cs-stratified"], "--recovery", "lasoo"), "did you mean 'lasso'"
    )
