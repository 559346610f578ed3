"""Paired statistics, against SciPy, enumeration and simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from broca.verification import statistics


def paired(lost, gained, same_right=3, same_wrong=2):
    """Returns binary scores before and after with the given numbers of changes."""
    counts = lost, gained, same_right, same_wrong
    return np.repeat([1.0, 0.0, 1.0, 0.0], counts), np.repeat([0.0, 1.0, 1.0, 0.0], counts)


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (5, 0), (9, 2), (10, 2), (4, 4), (0, 7)])
def test_mcnemar_is_the_enumerated_sign_test(lost, gained):
    """The p-value is the share of sign assignments that are as uneven as the observed one.

    The interval excludes zero only where it is at most 0.05.
    """
    changed = lost + gained
    as_uneven = [
        abs(2 * sum(signs) - changed) >= abs(lost - gained)
        for signs in itertools.product((0, 1), repeat=changed)
    ]
    drop, test, p = statistics.paired_drop(*paired(lost, gained, 40, 9))
    assert (test, p) == ("mcnemar", pytest.approx(np.mean(as_uneven)))
    assert (drop.low <= 0 <= drop.high) == (p > 0.05)


@pytest.mark.parametrize(("count", "error"), [(5, 1e-9), (12, 1e-9), (14, 0.01)])
def test_permutation_tests_are_scipys_exact_ones(count, error):
    """On few items the p-value equals SciPy's over all sign assignments; on more it is near."""
    rng = np.random.default_rng(count)
    before, after = rng.normal(0.7, 1, count), rng.normal(size=count)
    done = stats.permutation_test(
        (before - after,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert statistics.permutation_test(before, after) == pytest.approx(done.pvalue, abs=error)


def test_the_test_follows_the_metric():
    """Right/wrong scores, also negated ones, get McNemar's test; others the permutation test."""
    before, after = paired(9, 1)
    assert statistics.paired_test(-before, -after, seed=0, aggregate=None)[0] == "mcnemar"
    assert statistics.paired_test(before * 0.5, after, seed=0, aggregate=None)[0] == "permutation"
    assert not statistics.is_binary(np.array([0.0, 1.0, -1.0]))


def test_holm_by_hand_and_against_its_definition():
    """Adjusted p-values equal examples by hand, and reject what the step-down procedure rejects."""
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.uniform(size=6) ** 3
        adjusted = np.array(statistics.holm(p))
        for level in (0.01, 0.05, 0.3):
            rejected = np.zeros(6, dtype=bool)
            for position, index in enumerate(np.argsort(p)):
                if p[index] > level / (6 - position):
                    break
                rejected[index] = True
            np.testing.assert_array_equal(adjusted <= level, rejected)


def test_bootstrap_agrees_with_scipys_paired_bootstrap():
    """The percentile interval of the mean difference is within 0.015 of SciPy's."""
    before, after = paired(50, 8, 80, 12)
    interval = statistics.bootstrap_interval(before, after, resamples=20000)
    expected = stats.bootstrap(
        (before - after,), np.mean, method="percentile", n_resamples=5000, rng=0
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=0.015)


def test_intervals_reach_what_was_not_seen_and_stop_at_guessing():
    """One lost item of 100 is no surer than none; what guessing keeps varies with the score."""
    right = np.ones(100)
    none, one = (
        statistics.bootstrap_interval(right, right - (np.arange(100) < lost)) for lost in (0, 1)
    )
    assert none.high == pytest.approx(one.high - 0.01) == pytest.approx(0.01 - one.low)
    most = statistics.paired_drop(np.linspace(0.9, 1, 9), np.zeros(9))[0].high
    assert most == 1  # not more than all
    before = (np.arange(100) % 5 > 0).astype(float)
    drops = statistics.bootstrap_drops(before, np.zeros(100), floor=0.5)
    assert drops.mean() == pytest.approx(0.3, abs=0.01)
    assert drops.std() == pytest.approx(0.04, abs=0.005)  # that of a share of .8 on 100 items


@pytest.mark.parametrize(("drop", "gained"), [(0.1, 0.0), (0.1, 0.05), (0.2, 0.02)])
def test_power_is_the_share_of_simulated_rejections(drop, gained):
    """The power on 80 items equals the share of rejections in 4,000 simulations."""
    rng = np.random.default_rng(0)
    draws = rng.multinomial(80, [drop + gained, gained, 1 - drop - 2 * gained], size=4000)
    kinds, counts = np.unique(draws, axis=0, return_counts=True)
    rejected = [
        lost + won > 0 and stats.binomtest(int(lost), int(lost + won), 0.5).pvalue <= 0.05
        for lost, won, _ in kinds
    ]
    share = np.dot(rejected, counts) / len(draws)
    assert statistics.power(80, drop, gained=gained) == pytest.approx(share, abs=0.025)
    assert statistics.power(200, 0.0) == 0.0 < statistics.power(200, 0.0, gained=0.1) <= 0.05


def test_items_needed_reach_the_power_and_fewer_do_not():
    """The number reaches a power of 0.8, one less does not."""
    for drop in (0.05, 0.1, 0.2):
        needed = statistics.items_needed(drop, gained=0.02)
        assert statistics.power(needed, drop, gained=0.02) >= 0.8
        assert statistics.power(needed - 1, drop, gained=0.02) < 0.8
