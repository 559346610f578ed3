"""Grades of repeated runs."""

from dataclasses import replace

import pytest
from results.samples import make_result

from broca.verbs.rerun import compare_rankings, compare_results


@pytest.mark.parametrize(
    ("by", "dtype", "grade"),
    [
        (0, "float32", "identical"),
        (1e-8, "float32", "equal within the tolerance"),
        (1e-3, "float32", "different"),
        (1e-3, "bfloat16", "equal within the tolerance"),
    ],
)
def test_effects_are_compared_with_the_largest(by, dtype, grade):
    """Effects are compared relative to the largest, with the tolerance of the number format."""
    result = make_result()
    result = replace(result, model=replace(result.model, dtype=dtype))
    first, *others = result.ranking
    largest = max(abs(component.effect) for component in result.ranking)
    ranking = (replace(first, effect=first.effect + by * largest), *others)
    repetition = compare_rankings(result, ranking, result.selected)
    assert repetition.grade == grade
    if by == 1e-3:
        assert "0.001 of the largest effect" in repetition.details[0]


def test_another_selection_is_different():
    """Another selection is different whatever the effects, and the details name it."""
    result = make_result()
    repetition = compare_rankings(result, result.ranking, ("L0H0",))
    assert repetition.grade == "different"
    assert "selected L0H0 instead of" in repetition.details[-1]
    fewer = compare_rankings(result, result.ranking[1:], result.selected)
    assert fewer.details == ("the components are not the same",)


def test_changed_scores_and_weights_are_listed():
    """A changed score of the intact model and a changed fingerprint are listed."""
    result = make_result()
    assert compare_results(result, result).grade == "identical"
    task = result.task
    baseline = {**result.baseline, task: result.baseline[task] - 0.5}
    model = replace(result.model, fingerprint="0" * 16)
    repetition = compare_results(result, replace(result, baseline=baseline, model=model))
    assert repetition.grade == "different"
    assert repetition.details[0] == "the weights of the model changed"
    assert f"the intact score of {task}" in repetition.details[1]
