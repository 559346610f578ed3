"""Searches that differ in their seed alone."""

import pytest
from verbs.run_folders import localize_into

from broca.errors import BadInput

ARGUMENTS = {
    "model": "reference-small", "task": "capitals", "others": [], "method": "cs-fresh",
    "rows": 150, "items": 12, "report_items": 20, "verify": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A localization of three searches."""
    return localize_into(tmp_path_factory.mktemp("run"), seed=4, seeds=3, **ARGUMENTS)


def test_a_repeat_is_what_a_run_with_its_seed_finds(repeated, tmp_path):
    """On its own items, with its own masks; the first search stays as it is."""
    assert [repeat.seed for repeat in repeated.repeats] == [5, 6]
    for seed, searched in ((4, repeated), (5, repeated.repeats[0])):
        alone = localize_into(tmp_path / str(seed), seed=seed, **ARGUMENTS)
        assert alone.selected == searched.selected
        assert alone.repeats == ()
    assert alone.cost.rows == repeated.repeats[0].rows
    assert repeated.cost.rows <= 150


def test_at_least_one_search_is_needed(tmp_path):
    """Before a model is loaded."""
    with pytest.raises(BadInput, match="`seeds` must be at least 1, not 0"):
        localize_into(tmp_path, seeds=0, **ARGUMENTS)
