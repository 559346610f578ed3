"""The subject of the live page: a model's name, or a result that broca saved."""

import pytest
from results.samples import make_atlas, make_result, make_stress

from broca.errors import BadInput
from broca.explorer.subject import ExplorerSubject


def test_a_name_is_a_model():
    """A name that is no folder is taken for a model."""
    assert ExplorerSubject.of("some/model") == ExplorerSubject("some/model")


def test_a_run_brings_its_set_effects_and_tasks(tmp_path):
    """A run brings its selection, effects and tasks, and its model by name."""
    result = make_result()
    result.save(tmp_path)
    subject = ExplorerSubject.of(tmp_path)
    assert subject.model == "toy"
    assert subject.sets == {"needed for adding": result.selected}
    assert subject.effects == {line.name: line.effect for line in result.ranking}
    assert subject.tasks == result.tasks


def test_a_verification_and_an_atlas_bring_their_sets(tmp_path):
    """A verification brings its set, and an atlas a set for each task with its own components."""
    result = make_result()
    (tmp_path / "v").mkdir()
    result.verification.save(tmp_path / "v")
    assert ExplorerSubject.of(tmp_path / "v").sets == {"verified on adding": result.selected}
    make_atlas().save(tmp_path / "a")
    assert ExplorerSubject.of(tmp_path / "a").sets == {"needed for adding": ("L0H0",)}


def test_other_results_are_refused(tmp_path):
    """A result that names no components is refused in one line."""
    make_stress().save(tmp_path)
    with pytest.raises(BadInput, match="is a stress test, which names no components"):
        ExplorerSubject.of(tmp_path)


def test_a_folder_is_named_by_its_last_part(tmp_path):
    """The page shows the last part of a folder's path alone."""
    (tmp_path / "config.json").write_text("{}")
    subject = ExplorerSubject.of(tmp_path)
    assert subject.model == str(tmp_path)
    assert subject.shown_name == tmp_path.name
