"""`broca.compare` measures the same masks and items on every model."""

import copy
import json

import numpy as np
import pytest
import torch
from journals import totals
from models.test_loading import hub_cache
from models.test_quantized import EightBit, packed
from verbs.run_folders import localize_into

import broca
from broca.errors import BadInput, UnknownName
from broca.models import GatedModel
from broca.testing import tiny_llama, tiny_tokenizer


def without(model, layer, head, name):
    """Returns a copy of a model with a head's output columns zeroed."""
    plain = copy.deepcopy(model.model)
    width = model.structure.projections[layer].head_dim
    with torch.no_grad():
        weight = plain.model.layers[layer].self_attn.o_proj.weight
        weight[:, head * width : (head + 1) * width] = 0
    return broca.load(plain, model.tokenizer, name=name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a run that localized capitals."""
    folder = tmp_path_factory.mktemp("run")
    localize_into(
        folder, model="reference-small", task="capitals", others=[], rows=600, items=30,
        report_items=20, verify=False,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def compared(small, folder, tmp_path_factory):
    """The comparison of the run's model with a copy that lost its first head, and its journal."""
    first = broca.read(folder).ranking[0]
    journal = tmp_path_factory.mktemp("journal") / "rows.sqlite"
    return broca.compare(
        folder, without(small, first.layer, first.head, "lost"), items=40, limit=80,
        journal=journal,
    ), journal  # fmt: skip


def test_a_head_that_no_model_has_is_refused_before_tasks_are_built(small, monkeypatch):
    """Heads that the model lacks are refused once it is loaded."""
    monkeypatch.setattr("broca.verbs.compare.load_tasks", None)
    with pytest.raises(UnknownName, match="has no component 'L99H1'"):
        broca.compare(small, small, tasks="addition", heads="L99H1")


def test_the_head_that_was_lost_changed_and_no_other(compared, folder):
    """The lost head's interval contains 0, its change is significant; at most one other changed."""
    comparison, _ = compared
    first = broca.read(folder).ranking[0]
    (change,) = comparison.differences
    assert first.name in change.changed
    assert len(change.changed) <= 2
    column = comparison.components.index(first.name)
    before, after = (line.effects[column] for line in comparison.effects)
    assert comparison.effects[1].low[column] < 0 < comparison.effects[1].high[column]
    assert change.differences[column] == pytest.approx(after - before)
    assert change.low[column] > 0 > before


def test_differences_are_those_of_effects(compared):
    """The difference of two models equals the difference of their effects."""
    comparison, _ = compared
    first, second = (np.array(line.effects) for line in comparison.effects)
    np.testing.assert_allclose(comparison.differences[0].differences, second - first, atol=1e-9)


def test_scores_are_those_of_the_intact_models_and_without_the_selection(compared, small, folder):
    """Ablating the selection gives both models one score; the copy scores lower when intact."""
    comparison, _ = compared
    run = broca.read(folder)
    scores = {(line.model, line.selection): line for line in comparison.scores}
    label = f"reference-small, {run.task}"
    assert {model for model, _ in scores} == {"reference-small", "lost"}
    assert scores["lost", label].score == scores["reference-small", label].score
    assert scores["lost", None].score < scores["reference-small", None].score
    (line,) = comparison.carries
    assert (line.selection, line.model, line.carried) == (label, "lost", "yes")


def test_the_same_call_measures_nothing_again_and_says_the_same(compared, small, folder):
    """A second call on the journal returns an equal comparison without measuring."""
    comparison, journal = compared
    first = broca.read(folder).ranking[0]
    before = totals(journal)["rows"]
    again = broca.compare(
        folder, without(small, first.layer, first.head, "lost"), items=40, limit=80, journal=journal
    )
    assert again == comparison
    assert totals(journal)["rows"] == before


def test_two_tasks_of_one_model_and_named_heads(small, folder):
    """Named tasks replace the run's, named heads are added, and a model equals itself."""
    comparison = broca.compare(
        folder, small, tasks="capitals,sorting", heads="L1H1+L0H2", items=12, limit=20, rows=120
    )
    assert comparison.tasks == ("capitals", "sorting")
    assert [model.label for model in comparison.models] == [
        "reference-small",
        "reference-small (2)",
    ]
    assert all(not line.changed for line in comparison.differences)
    assert all(set(line.differences) == {0.0} for line in comparison.differences)
    assert comparison.selections[-1].components == ("L1H1", "L0H2")


def test_atlases_bring_their_tasks_and_selections(small, tmp_path):
    """Two atlases are compared on their common tasks, with their selections."""
    for number, tasks in enumerate((["capitals", "sorting"], ["sorting", "capitals"])):
        broca.atlas(small, tasks, rows=400, items=8, task_options=broca.TaskOptions(limit=40)).save(
            tmp_path / str(number)
        )
    comparison = broca.compare(tmp_path / "0", tmp_path / "1", items=12, limit=20, rows=120)
    assert comparison.tasks == ("capitals", "sorting")
    assert {selection.task for selection in comparison.selections} <= {"capitals", "sorting"}


def test_generations_are_compared_by_accuracy(tmp_path):
    """Models are compared by accuracy on generations; margins of own answers are refused."""
    lines = ({"prompt": f"{n} and", "answer": " x"} for n in range(60))
    task = tmp_path / "own.jsonl"
    task.write_text("\n".join(map(json.dumps, lines)) + "\n")
    models = [
        GatedModel.wrap(tiny_llama(seed=seed), tiny_tokenizer(), name=f"tiny{seed}")
        for seed in (0, 1)
    ]
    comparison = broca.compare(*models, tasks=str(task), items=12, limit=10, rows=60)
    assert comparison.response == "accuracy"
    assert any("at chance" in note for note in comparison.notes)
    with pytest.raises(BadInput, match="would compare each model with its own answers"):
        broca.compare(*models, tasks=str(task), items=12, limit=10, rows=60, response="margin")


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        (1, {"tasks": "capitals"}, "`models` names 1: a comparison needs two"),
        (2, {}, "no task is named"),
        (2, {"tasks": "capitals", "revisions": ["a"]}, "`revisions` are those of one model"),
        (2, {"tasks": "capitals", "ablation": "mean"}, "no parameter 'ablation'"),
        (2, {"tasks": "capitals", "rows": 50}, "`rows` 50 is too few to compare 48"),
    ],
)
def test_bad_input_is_one_line(small, models, options, message):
    """A single model, no task and bad options are refused before anything is measured."""
    stages = []
    with pytest.raises(BadInput, match=message):
        broca.compare(
            *[small] * models, **options, on_progress=lambda stage, _: stages.append(stage)
        )
    assert not any(stage.startswith(("scoring", "measuring")) for stage in stages)


def test_other_architectures_and_other_weights_are_refused(small, reference, folder, tmp_path):
    """Models with other components and a result of other weights are refused."""
    with pytest.raises(BadInput, match=r"'reference' has 96 components .* the first model 48"):
        broca.compare(small, reference, tasks="capitals", items=12, limit=10, rows=120)
    text = (folder / "result.json").read_text()
    fingerprint = broca.read(folder).model.fingerprint
    (tmp_path / "result.json").write_text(text.replace(fingerprint, "0" * 32))
    with pytest.raises(BadInput, match="are not those of the result"):
        broca.compare(tmp_path, small, items=12, limit=10, rows=120)


def test_revisions_of_one_model_give_curves(tmp_path, monkeypatch):
    """Checkpoints keep their order, and each named head has a curve over them."""
    hub_cache(tmp_path / "hub", "me/tiny", ["main", "step1", "step2"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    lines = (
        {"prompt": f"{n} is", "choices": [" a", " b", " c"], "label": n % 3} for n in range(80)
    )
    task = tmp_path / "own.jsonl"
    task.write_text("\n".join(map(json.dumps, lines)) + "\n")
    comparison = broca.compare(
        "me/tiny", revisions=["step1", "step2", "main"], tasks=str(task), heads="L0H1+L1H2",
        items=12, limit=20, rows=60, device="cpu",
    )  # fmt: skip
    labels = ["me/tiny@step1", "me/tiny@step2", "me/tiny@main"]
    assert [model.label for model in comparison.models] == labels
    assert [model.model.revision for model in comparison.models] == [
        f"{number:040x}" for number in (1, 2, 0)
    ]
    curves = comparison.curves()
    assert set(curves) == {(str(task), "L0H1"), (str(task), "L1H2")}
    assert all(len(points) == 3 for points in curves.values())
    assert [line.model for line in comparison.differences] == labels[1:]


def test_a_quantized_model_against_its_base(small):
    """Effects of an 8-bit model correlate above 0.9 with its base's, and no component changed."""
    plain = copy.deepcopy(small.model)
    quantized = broca.load(packed(EightBit, plain), small.tokenizer, name="eight bits")
    comparison = broca.compare(
        small, quantized, tasks="capitals", heads="L0H1+L1H2", rows=200, items=12, limit=20
    )
    assert [model.label for model in comparison.models] == ["reference-small", "eight bits"]
    first, second = (np.array(line.effects) for line in comparison.effects)
    assert not np.array_equal(first, second)
    assert np.corrcoef(first, second)[0, 1] > 0.9
    assert all(not change.changed for change in comparison.differences)
