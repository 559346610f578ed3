"""Requests of `broca.export`: model, components, ablation and form."""

import json
from dataclasses import replace

import pytest
import torch
from claims import claimed
from results.samples import make_result

from broca.engine import Ablation, donor_activations
from broca.errors import BadInput, UnsupportedModel
from broca.exports.request import ExportRequest
from broca.options import ModelOptions, RunOptions, TaskOptions
from broca.results.base import AblationInfo
from broca.runs.session import open_run

RESULT = make_result()


def test_a_result_stands_for_its_model_and_components(tmp_path):
    """A result or its folder gives the model, components and ablation.

    A verification in the folder is used if it is of the same selection.
    """
    RESULT.save(tmp_path)
    for target in (RESULT, tmp_path):
        request = ExportRequest.of(target, None, "adapter", None)
        assert (request.model, request.components) == (RESULT.model.name, RESULT.selected)
        assert request.ablation == RESULT.ablation
    assert request.checked_task(None) == RESULT.task
    asked = replace(request, result=replace(RESULT, task_options={"num_fewshot": 1})).asked
    assert [asked(TaskOptions(), task).num_fewshot for task in (None, "addition")] == [1, None]
    for heads, seed in ((RESULT.selected, 77), (("L0H1",), RESULT.verification.seed)):
        replace(RESULT.verification, seed=77, heads=heads).save(tmp_path)
        assert ExportRequest.of(tmp_path, None, "heads", None).result.verification.seed == seed


def test_named_components_of_a_model_are_zeroed_or_scaled(tiny):
    """Named components are zeroed or scaled without a result, each once."""
    request = ExportRequest.of(tiny, "L1H2+L0H1+L1H2", "adapter", None)
    assert request.ablation == AblationInfo("zero", 0.0)
    assert request.result is None
    assert request.names(tiny) == ("L1H2", "L0H1")
    assert ExportRequest.of(tiny, ["L1H2"], "heads", 0.5).ablation == AblationInfo("zero", 0.5)
    with pytest.raises(BadInput, match="`items` are those of a mean"):
        ExportRequest.of(tiny, ["L1H2"], "heads", None, 5)


def test_components_of_a_result_in_another_model(tiny):
    """A result as `heads` names components of the caller's model, whose weights must match."""
    with pytest.raises(BadInput, match="'adding' selected nothing"):
        ExportRequest.of(tiny, replace(RESULT, selected=()), "weights", None)
    request = ExportRequest.of(tiny, RESULT, "adapter", None)
    assert (request.model, request.components) == (tiny, RESULT.selected)
    same = replace(RESULT, model=replace(RESULT.model, fingerprint=tiny.fingerprint))
    ExportRequest.of(tiny, same, "adapter", None).require_same_weights(tiny)


@pytest.mark.parametrize(
    ("kind", "form", "message"),
    [
        ("resample", "weights", "resample ablation cannot be exported"),
        ("mean", "adapter", "`kind` adapter multiplies outputs"),
        ("mean", "heads", "`kind` heads multiplies outputs"),
    ],
)
def test_an_ablation_that_a_form_cannot_hold_is_refused(kind, form, message):
    """Resample ablation, and mean ablation in the forms of factors, are refused unless scaled."""
    replaced = replace(RESULT, ablation=AblationInfo(kind, 0.0))
    with pytest.raises(UnsupportedModel, match=message):
        ExportRequest.of(replaced, None, form, None)
    request = ExportRequest.of(replaced, None, form, 0)
    assert request.ablation == AblationInfo("zero", 0)
    averaged = replace(request, ablation=AblationInfo("mean", 0.0))
    with pytest.raises(BadInput, match="under mean ablation the outputs alone are compared"):
        averaged.checked_task("choice")


def test_means_are_those_of_the_runs_locate_items(tiny, tmp_path):
    """Means are taken over the locate items of the run's task and seed, and need a run."""
    task = tmp_path / "own.jsonl"
    lines = ({"prompt": f"{n} and {n} =", "answer": " x"} for n in range(24))
    task.write_text("\n".join(map(json.dumps, lines)) + "\n")
    run = replace(RESULT, task=str(task), ablation=AblationInfo("mean", 0.0))
    assert ExportRequest.of(tiny, run, "weights", None).items == 100  # it records none
    run = replace(run, search=replace(run.search, items=4))
    with open_run(tiny, RunOptions(), warns=False) as opened:
        request = ExportRequest.of(tiny, run, "weights", None)
        means = request.means(opened, ("L0H1",))
        with pytest.raises(BadInput, match="mean ablation needs the items of a run"):
            replace(request, result=None).means(opened, ("L0H1",))
        assert ExportRequest.of(tiny, "L0H1", "weights", None).means(opened, ("L0H1",)) is None
    repeated = "broca.export(broca.read('RUN'), 'FOLDER', heads='L0H1', kind='weights', items=4)"
    assert request.call(("L0H1",)) == repeated
    tasks = claimed(tiny, str(task), others=[], items=4, seed=run.search.seed, searched="task")
    places = tasks.places["locate"][tasks.task]
    assert len(places) == 4
    tokens = [tokens for _, tokens in tasks.scored_tokens(places.tolist())]
    points = tiny.gated_parts(("L0H1",)).points
    expected = donor_activations(tiny, tokens, Ablation("mean"), points=points)
    assert set(means) == set(expected)
    for point, output in expected.items():
        assert torch.equal(torch.as_tensor(means[point]), torch.as_tensor(output))


def test_held_out_numbers_are_those_of_the_same_components_and_ablation():
    """Held-out numbers belong to the same components in any order and to the same ablation."""
    request = ExportRequest.of(RESULT, None, "adapter", None)
    asked = TaskOptions()
    numbers = request.held_out(tuple(reversed(RESULT.selected)), asked)
    assert numbers.drops == RESULT.verification.drops
    verified = ExportRequest.of(RESULT.verification, None, "adapter", None)
    assert verified.held_out(RESULT.selected, asked) == numbers
    assert request.held_out(RESULT.selected[:1], asked) is None
    assert ExportRequest.of(RESULT, None, "adapter", 0.5).held_out(RESULT.selected, asked) is None


def test_held_out_numbers_under_mean_ablation_are_those_of_the_same_means():
    """Other items, or items asked otherwise, have other means, under which nothing was measured."""
    mean = AblationInfo("mean", 0.0)
    verification = replace(RESULT.verification, ablation=mean)
    averaged = replace(RESULT, ablation=mean, verification=verification)
    same, other = (ExportRequest.of(averaged, None, "weights", None, n) for n in (None, 7))
    assert same.held_out(RESULT.selected, TaskOptions()) is not None
    assert same.held_out(RESULT.selected, TaskOptions(num_fewshot=2)) is None
    assert other.held_out(RESULT.selected, TaskOptions()) is None


def test_weights_that_are_written_stay_in_their_number_format():
    """Weights keep the stored number format unless the caller names another."""
    options = ModelOptions()
    request = ExportRequest.of("name", "L0H1+L1M", "weights", None)
    assert request.loading(options).dtype == "stored"
    assert request.loading(replace(options, dtype="bfloat16")).dtype == "bfloat16"
    assert request.loading(options).components == "heads+mlp"


def test_the_call_repeats_the_export(tiny):
    """The recorded call repeats the export by the model's name, or says that it was in memory."""
    call = ExportRequest.of("m", "L0H1", "weights", 0.1234567).call(("L0H1", "L1H0"))
    assert call == "broca.export('m', 'FOLDER', heads='L0H1+L1H0', kind='weights', scale=0.1234567)"
    assert "in memory" in ExportRequest.of(tiny, "L0H1", "weights", None).call(("L0H1",))
