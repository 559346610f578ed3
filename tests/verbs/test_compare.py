"""`broca.compare` measures the same masks and items on every model."""

import json
from dataclasses import replace

import numpy as np
import pytest
from independent import zeroed_by_hand
from journals import totals
from models.test_loading import hub_cache
from tiny import tiny_gated
from verbs.run_folders import localize_into

import broca
from broca.errors import BadInput
from broca.results.base import AblationInfo


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a run that localized capitals."""
    folder = tmp_path_factory.mktemp("run")
    localize_into(
        folder, model="reference-small", task="capitals", others=[], rows=600, items=30,
        report_items=20, verify=False,
    )  # fmt: skip
    return folder


def compared_with_lost(small, folder):
    """Compares the run's model with a copy that lost its first head, in a journal of its own."""
    first = broca.read(folder).ranking[0]
    edited = zeroed_by_hand(small.model, [(first.layer, first.head)])
    lost = broca.load(edited, small.tokenizer, name="lost")
    return broca.compare(folder, lost, items=40, limit=80, journal=folder / "compared.sqlite")


@pytest.fixture(scope="module")
def comparison(small, folder):
    """The comparison of the run's model with a copy that lost its first head."""
    return compared_with_lost(small, folder)


def test_the_head_that_was_lost_changed_and_no_other(comparison, folder):
    """The lost head's effect is lost and its change significant; at most one other changed."""
    first = broca.read(folder).ranking[0]
    (change,) = comparison.differences
    assert first.name in change.changed
    assert len(change.changed) <= 2
    column = comparison.components.index(first.name)
    before, after = (np.array(line.effects) for line in comparison.effects)
    np.testing.assert_allclose(change.differences, after - before, atol=1e-9)
    assert comparison.effects[1].low[column] < 0 < comparison.effects[1].high[column]
    assert change.low[column] > 0 > before[column]


def test_scores_are_those_of_the_intact_models_and_without_the_selection(comparison, folder):
    """Ablating the selection gives both models one score; the copy scores lower when intact."""
    run = broca.read(folder)
    scores = {(line.model, line.selection): line for line in comparison.scores}
    label = f"reference-small, {run.task}"
    assert {model for model, _ in scores} == {"reference-small", "lost"}
    assert scores["lost", label].score == scores["reference-small", label].score
    assert scores["lost", None].score < scores["reference-small", None].score
    (line,) = comparison.carries
    assert (line.selection, line.model, line.carried) == (label, "lost", "yes")


def test_the_same_call_measures_nothing_again_and_says_the_same(comparison, small, folder):
    """A second call on the journal returns an equal comparison without measuring."""
    before = totals(folder / "compared.sqlite")
    assert compared_with_lost(small, folder) == comparison
    assert totals(folder / "compared.sqlite") == before


def test_two_tasks_of_one_model_and_named_heads(small, folder):
    """Named tasks replace the run's, named heads are added, and a model equals itself."""
    comparison = broca.compare(
        folder, small, tasks="capitals,sorting", heads="L1H1+L0H2", items=12, limit=20, rows=120
    )
    assert comparison.tasks == ("capitals", "sorting")
    labels = [model.label for model in comparison.models]
    assert labels == ["reference-small", "reference-small (2)"]
    assert all(not line.changed for line in comparison.differences)
    assert all(set(line.differences) == {0.0} for line in comparison.differences)
    assert comparison.selections[-1].components == ("L1H1", "L0H2")


def test_models_are_asked_as_the_first_run_was(small, folder):
    """A run or an atlas brings its prompts, a run its scale, and what the call says is kept."""
    run = replace(broca.read(folder), task_options={"system_prompt": "no"})
    few = {"tasks": "capitals", "items": 12, "limit": 20, "rows": 120}
    chart = broca.atlas(small, "capitals,sorting", rows=400, system_prompt="no")
    asked = [
        (small, {"system_prompt": "no"}), (run, {}), (chart, {}), (run, {"system_prompt": "a"}),
        (replace(run, ablation=AblationInfo("zero", 0.5)), {}),
    ]  # fmt: skip
    first, second, third, *changed = (
        broca.compare(model, small, **few, **options).effects[0].effects for model, options in asked
    )
    assert first == second == third
    assert first not in changed
    found = [replace(run, ablation=AblationInfo("mean", 0.0)), replace(run, task_options={})]
    notes = " ".join(broca.compare(run, *found, **few).notes)  # measured once, as one model
    assert "under another ablation" in notes
    assert "some runs otherwise" in notes


def own_task(folder, lines):
    """Writes examples and returns the name of their task."""
    file = folder / "own.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return str(file)


def test_generations_are_compared_by_accuracy(tmp_path):
    """Models are compared by accuracy on generations; margins of own answers are refused."""
    task = own_task(tmp_path, ({"prompt": f"{n} and", "answer": " x"} for n in range(60)))
    models = [tiny_gated(f"tiny{seed}", seed=seed) for seed in (0, 1)]
    comparison = broca.compare(*models, tasks=task, items=12, limit=10, rows=60)
    assert comparison.response == "accuracy"
    assert any("no better than guessing" in note for note in comparison.notes)
    with pytest.raises(BadInput, match="would compare each model with its own answers"):
        broca.compare(*models, tasks=task, items=12, limit=10, rows=60, response="margin")
    task = own_task(tmp_path, ({"prompt": f"{n} and", "answer": " x"} for n in range(24)))
    with pytest.raises(BadInput, match="6 items for the masks: a comparison needs 10"):
        broca.compare(list(models), tasks=task)


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        ("same", {"heads": "L99H1"}, "has no component 'L99H1'"),
        ("same", {"ablation": "mean"}, "no parameter 'ablation'"),
        ("reference-smal", {}, "'reference-smal' is unknown"),
        ("reference", {}, "llama of 6 layers with 16 heads, .* of 4 layers with 12 heads"),
        ("reference", {"components": "mlp"},
         "llama of 6 layers, and the .* of 4 layers with 12 heads"),
        ("reference-small", {"chat_template": True}, "has no chat template"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(
    small, other, options, message
):
    """Bad options, and later models that are unknown or of another architecture, are refused."""
    stages, models = [], (small, small if other == "same" else other)
    with pytest.raises(BadInput, match=message):
        broca.compare(
            *models, tasks="capitals", **options, on_progress=lambda stage, _: stages.append(stage)
        )
    assert not any(stage.startswith(("scoring", "measuring")) for stage in stages)


def test_a_length_beyond_a_later_model_is_refused_before_anything_is_measured():
    """The first model reads as many tokens, the second does not."""
    models, stages = [tiny_gated(f"of {context}", context=context) for context in (256, 64)], []
    with pytest.raises(BadInput, match="`max_length` 128 is more than the 64 tokens"):
        broca.compare(
            models, tasks="capitals", max_length=128,
            on_progress=lambda stage, _: stages.append(stage),
        )  # fmt: skip
    assert not any(stage.startswith("building") for stage in stages)


def test_items_that_only_one_model_can_hold_are_refused(tmp_path):
    """Items that have no answer in one model would stand for others in the next."""
    lines = ({"prompt": f"{n} is", "answer": "a" * (2 if n % 5 else 90)} for n in range(120))
    models = [tiny_gated(f"of {context}", context=context) for context in (64, 256)]
    with pytest.raises(BadInput, match="for 'of 256', and others for the first model"):
        broca.compare(
            models, tasks=own_task(tmp_path, lines), items=60, limit=10, rows=60, reference="gold",
            gen_kwargs="max_gen_toks=4", response="probability",
        )  # fmt: skip


def test_revisions_of_one_model_give_curves(tmp_path, monkeypatch):
    """Checkpoints keep their order, and each named head has a curve over them."""
    hub_cache(tmp_path / "hub", monkeypatch, "main", "step1", "step2")
    choices = [" a", " b", " c"]
    lines = ({"prompt": f"{n} is", "choices": choices, "label": n % 3} for n in range(80))
    task = own_task(tmp_path, lines)
    comparison = broca.compare(
        "me/tiny", revisions=["step1", "step2", "main"], tasks=task, heads="L0H1+L1H2",
        items=12, limit=20, rows=60, device="cpu",
    )  # fmt: skip
    labels = ["me/tiny@step1", "me/tiny@step2", "me/tiny@main"]
    assert [model.label for model in comparison.models] == labels
    assert [model.model.revision for model in comparison.models] == [
        f"{number:040x}" for number in (1, 2, 0)
    ]
    curves = comparison.curves()
    assert set(curves) == {(task, "L0H1"), (task, "L1H2")}
    assert all(len(points) == 3 for points in curves.values())
    assert [line.model for line in comparison.differences] == labels[1:]
