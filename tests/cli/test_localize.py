"""`--recovery`, `--tune` and `plan` as a user meets them."""

import pytest
from cli.running import assert_refused, broca

from broca.cli.localize import _tuned, settings_from
from broca.errors import BadInput


def test_tune_keeps_the_design_of_the_method():
    """And is refused where there is nothing to tune."""
    settings = {}
    assert _tuned("cs-bernoulli", settings) == "cs-tuned"
    assert settings == {"design": "bernoulli"}
    assert _tuned("cs-tuned", {}) == "cs-tuned"
    with pytest.raises(BadInput, match="`tune`: method 'greedy'"):
        _tuned("greedy", {})


def test_recovery_of_a_method_without_one_is_refused(tmp_path):
    """The method's own options are named."""
    done = broca(
        "localize", "planted", "--task", "capitals", "--others", "", "--method", "greedy",
        "--recovery", "omp", "--out", tmp_path / "out",
    )  # fmt: skip
    assert_refused(done, "method 'greedy' has no option 'recovery'")


def test_options_are_read_as_what_they_are():
    """Numbers, words, and true and false."""
    pairs = ["masks=12", "cost=0.5", "design=bernoulli", "gradients=false", "warm-up=True"]
    assert settings_from(pairs) == {
        "masks": 12, "cost": 0.5, "design": "bernoulli", "gradients": False, "warm_up": True,
    }  # fmt: skip
