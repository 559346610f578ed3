"""The card of an export names it, how it is loaded and what it is based on."""

from dataclasses import replace

import pytest
import yaml
from results.samples import make_export

from broca.exports.folder import card, publish, unpublished
from broca.results.base import AblationInfo
from broca.results.export import BaseModel, Export
from broca.results.files import encode

HUB = BaseModel("org/base", "0123abc", "bfloat16")
SHIPPED = BaseModel("reference", None, "float32")


@pytest.mark.parametrize(
    ("changes", "metadata"),
    [
        ({"base": SHIPPED}, {"library_name": "peft", "base_model": None}),
        ({"form": "weights"}, {"library_name": "transformers"}),
        ({"form": "heads"}, {"library_name": "broca"}),
        ({"base": HUB}, {"base_model": "org/base", "base_model_relation": "adapter"}),
    ],
)
def test_the_hub_reads_how_an_export_is_loaded_and_its_base(changes, metadata):
    """The metadata of a card follow form and base."""
    fields = yaml.safe_load(card(make_export(**changes)).split("---\n", 2)[1])
    assert {name: fields.get(name) for name in metadata} == metadata


def test_recipe_verdict_numbers_and_checks_are_there():
    """The card holds recipe, verdict, numbers and checks; without results it omits them."""
    export = make_export()
    text = card(export)
    for part in (
        export.model.fingerprint, "L1H2+L0H0", "zero, factor 0",
        export.command, export.broca, export.held_out.verdict.text, "32 prompts", "0.2500",
    ):  # fmt: skip
        assert part in text, part
    plain = card(replace(export, held_out=None, reloaded=None, scored=None))
    assert "held-out" not in plain
    assert "Checked" not in plain
    halved = card(replace(export, ablation=AblationInfo("mean", 0.5)))
    assert "# toy with L1H2, L0H0 at 0.5" in halved
    assert "are ablated (mean ablation, gate 0.5):" in halved
    own = replace(export, model=replace(export.model, remote_code=True))
    assert ", trust_remote_code=True)" in card(own)


def test_an_earlier_export_is_replaced_and_names_nothing_outside(tmp_path):
    """Files of an earlier export are removed, unless they lie elsewhere, and a part lies within."""
    folder, part = tmp_path / "out", tmp_path / "part"
    for place in (folder, part):
        place.mkdir()
    for file in (tmp_path / "mine.txt", folder / "old.bin"):
        file.write_text("")
    names = {"../mine.txt": 1, str(tmp_path / "mine.txt"): 1, "old.bin": 1, ".": 1}
    (folder / Export.FILE).write_text(encode(replace(make_export(), files=names)))
    publish(make_export(), part, folder)
    with unpublished(folder) as part:
        assert part.parent == folder  # which may be a disk of its own
    assert (tmp_path / "mine.txt").exists()
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", Export.FILE]


def test_a_folder_is_called_by_its_name(tmp_path):
    """A base in a folder and a file of examples are named without their paths, and fit a table."""
    export, task = make_export(base=BaseModel(str(tmp_path), None, "float32")), f"{tmp_path}/|.csv"
    drop = replace(export.held_out.drops[0], task=task)
    held = replace(export.held_out, task=task, drops=(drop,))
    text = card(replace(export, command=f"broca.export('{tmp_path}', 'FOLDER')", held_out=held))
    assert f"broca.export({tmp_path.name!r}, 'FOLDER')" in text
    assert f"# {tmp_path.name} without L1H2" in text
    assert "\n| \\|.csv | " in text
    assert str(tmp_path) not in text
