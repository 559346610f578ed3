"""Subjects, tasks and selections of a comparison."""

from dataclasses import replace

import pytest
from results.samples import make_result

import broca
from broca.comparisons.subjects import (
    ComparedSubject,
    seed_of,
    selections_of,
    subjects_of,
    tasks_of,
)
from broca.errors import BadInput
from broca.models import GatedModel
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture(scope="module")
def model():
    """A tiny model."""
    return GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")


def test_a_name_a_model_and_a_result_are_subjects(model):
    """A result brings its model, revision, weights, task, selection and seed."""
    result = make_result()
    assert result.selected
    assert ComparedSubject.of("some/model") == ComparedSubject("some/model", "some/model")
    assert ComparedSubject.of(model) == ComparedSubject("tiny", model)
    subject = ComparedSubject.of(result)
    assert (subject.label, subject.model) == (result.model.name, result.model.name)
    assert (subject.revision, subject.fingerprint) == (
        result.model.revision,
        result.model.fingerprint,
    )
    assert subject.tasks == (result.task,)
    assert subject.selections == ((result.task, result.selected),)
    assert subject.seed == result.search.seed
    assert ComparedSubject.of(replace(result, selected=())).selections == ()


def test_the_folder_of_a_run_stands_for_its_result_and_that_of_a_model_for_the_model(
    model, tmp_path
):
    """A checkpoint is known by its `config.json`; other results are refused."""
    result = make_result()
    result.save(tmp_path / "run")
    assert ComparedSubject.of(tmp_path / "run") == ComparedSubject.of(broca.read(tmp_path / "run"))
    model.model.save_pretrained(tmp_path / "model")
    assert ComparedSubject.of(tmp_path / "model") == ComparedSubject(
        str(tmp_path / "model"), str(tmp_path / "model")
    )
    result.verification.save(tmp_path / "verification")
    with pytest.raises(BadInput, match="cannot be compared: give localizations, atlases or models"):
        ComparedSubject.of(tmp_path / "verification")


def test_labels_differ(model):
    """Repeated names are numbered, and revisions are named."""
    labels = [subject.label for subject in subjects_of([model, model, "other", model])]
    assert labels == ["tiny", "tiny (2)", "other", "tiny (3)"]
    subjects = subjects_of(["some/model"], ["a", "b"])
    assert [subject.label for subject in subjects] == ["some/model@a", "some/model@b"]
    assert [subject.revision for subject in subjects] == ["a", "b"]


@pytest.mark.parametrize(
    ("count", "revisions", "message"),
    [
        (0, (), "`models` names 0"),
        (1, (), "`models` names 1"),
        (1, ("a",), "`models` names 1"),
        (2, ("a", "b"), "`revisions` are those of one model"),
    ],
)
def test_a_comparison_needs_two_subjects(count, revisions, message):
    """A comparison takes two models, or a model with two revisions."""
    with pytest.raises(BadInput, match=message):
        subjects_of(["some/model"] * count, revisions)


def test_other_weights_than_those_of_the_result_are_refused(model):
    """A model is refused if its fingerprint is not that of the result."""
    ComparedSubject("tiny", model).require_weights(model)
    ComparedSubject("tiny", model, fingerprint=model.fingerprint).require_weights(model)
    with pytest.raises(BadInput, match="are not those of the result 'tiny'"):
        ComparedSubject("tiny", model, fingerprint="0" * 32).require_weights(model)


A, B = (ComparedSubject(name, name) for name in "ab")
ONE, OTHER = replace(A, tasks=("sorting",)), replace(B, tasks=("capitals",))
ATLAS = replace(A, tasks=("capitals", "sorting", "addition"))


@pytest.mark.parametrize(
    ("subjects", "given", "tasks"),
    [
        ([ONE, OTHER, ONE], (), ("sorting", "capitals")),
        ([ONE, OTHER], "addition,addition,sorting", ("addition", "sorting")),
        ([ATLAS, replace(B, tasks=("addition", "capitals"))], (), ("capitals", "addition")),
        ([A, B], (), None),
        ([ATLAS, replace(B, tasks=("negation", "words"))], (), None),
    ],
)
def test_tasks_are_those_given_else_those_of_the_results(subjects, given, tasks):
    """Every task comes once, in the order of the first subject; of atlases what all have."""
    if tasks is None:
        with pytest.raises(BadInput, match="no task is named"):
            tasks_of(subjects, given)
    else:
        assert tasks_of(subjects, given) == tasks


def test_the_seed_is_that_given_else_that_of_the_first_result():
    """Without a result that has a seed it is 0."""
    seeded = replace(B, seed=7)
    assert [seed_of([A, seeded], None), seed_of([A, B], None), seed_of([seeded], 0)] == [7, 0, 0]


def test_selections_are_the_results_and_what_the_caller_named():
    """Names can be joined by `+`; a repeated component comes once."""
    subject = ComparedSubject(
        "a", "a", selections=(("sorting", ("L0H1",)), ("capitals", ("L1H0",)))
    )
    labels = [selection.label for selection in selections_of([subject, ComparedSubject("b", "b")])]
    assert labels == ["a, sorting", "a, capitals"]
    for heads in ("L1H1+ L0H2+L1H1", ["L1H1", "L0H2"]):
        selection = selections_of([subject], heads)[-1]
        assert (selection.label, selection.model, selection.task) == ("given", None, None)
        assert selection.components == ("L1H1", "L0H2")
