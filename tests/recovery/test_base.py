"""Recoveries in scikit-learn: clones, cross-validation, pipelines, parameters."""

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from broca.recovery import RECOVERIES, Guarded, PaperLasso, make_recovery


@pytest.fixture
def problem():
    """Masks and responses in which column 2 harms."""
    rng = np.random.default_rng(0)
    masks = rng.random((60, 10)) < 0.3
    return masks, 1 - 0.5 * masks[:, 2] + rng.normal(0, 0.01, 60)


@pytest.mark.parametrize("name", RECOVERIES)
def test_scikit_learn_takes_every_recovery_as_a_regressor(name, problem):
    """Cross-validation scores a recovery by the explained variance, and a pipeline fits it."""
    masks, responses = problem
    recovery = make_recovery(name)
    assert is_regressor(recovery)
    assert cross_val_score(recovery, masks, responses).mean() > 0.99
    fitted = make_pipeline(StandardScaler(), clone(recovery)).fit(masks, responses)
    assert fitted.score(masks, responses) > 0.99


def test_parameters_are_read_and_set_by_name(problem):
    """A grid search finds the lighter penalty; inner estimators are reached by `inner__alpha`."""
    search = GridSearchCV(PaperLasso(), {"alpha": [0.1, 0.001]}).fit(*problem)
    assert search.best_params_ == {"alpha": 0.001}
    guarded = Guarded(Ridge()).set_params(inner__alpha=3.0, fewest=5)
    assert guarded.get_params()["inner__alpha"] == 3.0
    assert guarded.get_params(deep=False) == {"inner": guarded.inner, "fewest": 5}
    assert clone(guarded).inner.alpha == 3.0
    with pytest.raises(ValueError, match="has no parameter 'beta'"):
        guarded.set_params(beta=1)


def test_text_shows_what_differs_from_the_defaults():
    """The text has the parameters that differ from the defaults, like those of scikit-learn."""
    assert repr(PaperLasso()) == "PaperLasso()"
    assert repr(PaperLasso(alpha=0.1, baseline=1.0)) == "PaperLasso(alpha=0.1, baseline=1.0)"
    assert repr(Guarded(Ridge(alpha=2.0))) == "Guarded(inner=Ridge(alpha=2.0))"
