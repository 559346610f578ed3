"""Subjects, tasks and selections of a comparison."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
from results.samples import make_result

from broca.comparisons.subjects import (
    ComparedSubject,
    merged,
    require_comparable,
    seed_of,
    selections_of,
    subjects_of,
    tasks_of,
)
from broca.errors import BadInput
from broca.options import RunOptions


def test_subjects_are_names_models_results_and_folders(tiny, tmp_path):
    """A result brings its model, weights, task, selection and seed; its folder stands for it.

    A folder of a checkpoint is known by its `config.json`; other results are refused.
    """
    result = make_result()
    subject = ComparedSubject(
        result.model.name, result.model.name, revision=result.model.revision,
        fingerprint=result.model.fingerprint, tasks=(result.task,),
        selections=((result.task, result.selected),), seed=result.search.seed,
    )  # fmt: skip
    result.save(tmp_path / "run")
    tiny.model.save_pretrained(tmp_path / "model")
    checkpoint = str(tmp_path / "model")
    for given, expected in (
        (result, subject),
        (tmp_path / "run", replace(subject, folder=tmp_path / "run")),
        (replace(result, selected=()), replace(subject, selections=())),
        ("some/model", ComparedSubject("some/model", "some/model")),
        (tiny, ComparedSubject("tiny", tiny)),
        (tmp_path / "model", ComparedSubject(checkpoint, checkpoint)),
    ):
        assert ComparedSubject.of(given) == expected
    result.verification.save(tmp_path / "verification")
    with pytest.raises(BadInput, match="cannot be compared: give localizations, atlases or models"):
        ComparedSubject.of(tmp_path / "verification")


def test_labels_differ(tiny):
    """Repeated names are numbered, and revisions are named."""
    labels = [subject.label for subject in subjects_of([tiny, tiny, "other", tiny])]
    assert labels == ["tiny", "tiny (2)", "other", "tiny (3)"]
    subjects = subjects_of(["some/model"], ["a", "b"])
    assert [subject.label for subject in subjects] == ["some/model@a", "some/model@b"]
    assert [subject.revision for subject in subjects] == ["a", "b"]


def test_heads_of_every_layer_are_compared(tiny):
    """Models whose layers have other numbers of heads are refused before any is loaded."""
    other = copy.deepcopy(tiny.model.config)
    other.num_attention_heads_per_layer = [4, 2]
    models = [tiny, replace(tiny, name="other", model=SimpleNamespace(config=other))]
    with pytest.raises(BadInput, match="'other' is a llama of 2 layers with 4 or 2 heads, and"):
        require_comparable(subjects_of(models), RunOptions())


def test_a_comparison_needs_two_subjects():
    """A comparison takes two models, or a model with two revisions."""
    with pytest.raises(BadInput, match="`models` names 1"):
        subjects_of(["some/model"], ["a"])
    with pytest.raises(BadInput, match="`revisions` is for one model"):
        subjects_of(["some/model"] * 2, ["a", "b"])


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


def test_seed_and_selections_are_the_results_and_what_the_caller_named():
    """A given seed comes first; names can be joined by `+`, and a repeated one comes once."""
    found = replace(A, selections=(("sorting", ("L0H1",)), ("capitals", ("L1H0",))), seed=7)
    assert [seed_of([B, found], None), seed_of([A, B], None), seed_of([found], 0)] == [7, 0, 0]
    for heads in ("L1H1+ L0H2+L1H1", ["L1H1", "L0H2"]):
        *results, given = selections_of([found, B], heads)
        assert [selection.label for selection in results] == ["a, sorting", "a, capitals"]
        assert (given.label, given.model, given.task) == ("given", None, None)
        assert given.components == ("L1H1", "L0H2")


def test_results_on_the_same_weights_are_measured_once():
    """Their selections are joined under labels of their own; other weights stay apart."""
    runs = [
        replace(A, fingerprint=weights, selections=((task, ("L0H1",)),))
        for weights, task in (("1", "sorting"), ("2", "sorting"), ("1", "sorting"), ("1", "words"))
    ]
    labels = [selection.label for selection in selections_of(merged([*runs[:1], *runs[2:]]))]
    assert labels == ["sorting", "sorting (2)", "words"]
    assert merged([A, B]) == (A, B)
    assert [len(subject.selections) for subject in merged(runs)] == [3, 1]
    (joined,) = merged([A, runs[0], A])
    assert (joined.label, joined.fingerprint, joined.selections) == ("a", "1", runs[0].selections)
