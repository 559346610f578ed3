"""The files of each form, their folder, and mean outputs over a run's items."""

import json
from dataclasses import replace

import pytest
import torch
from broca.exports.reloading import Origin
from broca.exports.requests import ExportRequest
from broca.exports.writing import claimed_folder, mean_outputs, publish, write_form
from claims import claimed
from results.samples import make_result
from safetensors.torch import load_file

import broca
from broca.engine import Ablation, donor_activations
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import RunOptions
from broca.results.base import AblationInfo
from broca.results.export import BaseModel, Export, ReloadCheck
from broca.runs.session import open_run
from broca.tasks import Catalog
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture(scope="module")
def model():
    """A tiny model in memory."""
    return GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")


FILES = {
    "adapter": "adapter_model.safetensors",
    "weights": "model.safetensors",
    "heads": "heads.json",
    "patch": "patch.safetensors",
}


@pytest.mark.parametrize("form", FILES)
def test_every_form_writes_its_file_and_leaves_the_model(form, model, tmp_path):
    """Each form writes its file; checkpoints and patches hold the changed tensors."""
    before = model.fingerprint
    request = ExportRequest.of(model, "L1H2", form, None)
    write_form(request, model, ("L1H2",), tmp_path, Origin.of(model))
    assert (tmp_path / FILES[form]).is_file()
    assert model.fingerprint == before
    if form in ("weights", "patch"):
        name = "model.layers.1.self_attn.o_proj.weight"
        expected = model.model.get_parameter(name).detach().clone()
        expected[:, 16:24] = 0  # the columns of head 2, eight wide
        assert torch.equal(load_file(tmp_path / FILES[form])[name], expected)


def test_means_are_those_of_the_runs_locate_items(tmp_path):
    """Means are taken over the locate items of the run's task and seed, and need a run."""
    task = tmp_path / "own.jsonl"
    lines = ({"prompt": f"{n} and {n} =", "answer": " x"} for n in range(24))
    task.write_text("\n".join(map(json.dumps, lines)) + "\n")
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")
    run = replace(make_result(), task=str(task), ablation=AblationInfo("mean", 0.0))
    request = ExportRequest.of(model, run, "weights", None)
    with open_run(model, RunOptions(), warns=False) as opened:
        means = mean_outputs(opened, ("L0H1",), request, 4)
        with pytest.raises(BadInput, match="zero ablation needs the items of a run"):
            mean_outputs(opened, ("L0H1",), ExportRequest.of(model, "L0H1", "weights", None), 4)
    tasks = claimed(
        model, str(task), Catalog(), others=[], items=4, seed=run.search.seed, searched="task"
    )
    places = tasks.places["locate"][tasks.task]
    assert len(places) == 4
    tokens = [tokens for _, tokens in tasks.scored_tokens(places.tolist())]
    points = model.gated_parts(("L0H1",)).points
    expected = donor_activations(model, tokens, Ablation("mean"), points=points)
    assert set(means) == set(expected)
    for point, output in expected.items():
        assert torch.equal(torch.as_tensor(means[point]), torch.as_tensor(output))


def make_export(result):
    """Returns an export of a result, without its files."""
    return Export(
        form="heads",
        model=result.model,
        base=BaseModel("toy", None, "float32"),
        components=result.selected,
        ablation=AblationInfo("zero", 0.0),
        held_out=None,
        files={},
        reloaded=ReloadCheck({"transformers": "5"}, 32, 12, 0.0, 1e-4, 32),
        scored=None,
        command="broca.export('toy', 'FOLDER')",
    )


def test_published_files_take_the_place_of_the_last_exports(tmp_path):
    """A published export replaces the last one, with a picture, broca's card and a record."""
    part, folder = tmp_path / "part", tmp_path / "out"
    done = make_export(make_result())
    for name in ("first.bin", "second.bin"):
        part.mkdir(exist_ok=True)
        claimed_folder(folder)
        (part / name).write_bytes(b"12345")
        (part / "README.md").write_text("of PEFT")
        published = publish(done, part, folder)
        assert published == broca.read(folder)
        assert set(published.files) == {name, "components.png"}
        assert published.files[name] == 5
        held = {file.name for file in folder.iterdir()}
        assert held == {name, "components.png", "README.md", "export.json"}
        assert "of PEFT" not in (folder / "README.md").read_text()


def test_a_folder_with_other_files_is_refused(tmp_path):
    """A new folder is made, and one with other files is refused."""
    assert claimed_folder(tmp_path / "new").is_dir()
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds other files"):
        claimed_folder(tmp_path)
