"""The card names the export, how it is loaded and what it is based on."""

from dataclasses import replace

import pytest
import yaml
from results.samples import make_export

from broca.exports.folder import card
from broca.results.export import BaseModel


def metadata(text):
    """Returns the metadata block that the hub reads."""
    _, block, _ = text.split("---\n", 2)
    return yaml.safe_load(block)


@pytest.mark.parametrize(
    ("form", "library", "use"),
    [
        ("adapter", "peft", "PeftModel.from_pretrained"),
        ("weights", "transformers", 'AutoModelForCausalLM.from_pretrained("PATH")'),
        ("heads", "broca", 'json.load(open("heads.json"))'),
    ],
)
def test_every_form_says_how_it_is_used(form, library, use):
    """The card of each form holds lines of Python that load it."""
    text = card(make_export(form=form))
    assert metadata(text)["library_name"] == library
    code = text.split("```python\n")[1].split("```")[0]
    assert use in code
    compile(code, "card", "exec")


def test_the_base_on_the_hub_is_named_to_the_hub():
    """A base on the hub is named in the metadata; a shipped model or one in memory is not."""
    export = make_export(base=BaseModel("org/base", "0123abc", "bfloat16"))
    fields = metadata(card(export))
    assert (fields["base_model"], fields["base_model_relation"]) == ("org/base", "adapter")
    assert "`0123abc`" in card(export)
    for base in (BaseModel("reference", None, "float32"), BaseModel(None, None, "float32")):
        assert "base_model" not in metadata(card(replace(export, base=base)))


def test_a_shipped_base_is_loaded_from_the_package():
    """The code for a shipped base loads it from its folder in broca."""
    text = card(make_export(base=BaseModel("reference", None, "float32")))
    assert "from_pretrained(shipped_model_folder('reference'))" in text
    assert "import shipped_model_folder" in text


def test_recipe_verdict_numbers_and_checks_are_there():
    """The card holds recipe, verdict, numbers and checks; without results it omits them."""
    export = make_export()
    text = card(export)
    for part in (
        export.model.fingerprint, "L1H2+L0H0", "zero, factor 0",
        export.command, export.broca, export.held_out.verdict.text, "32 prompts",
        "lm-eval's `hf` model scores 0.2500", "| adding |",
    ):  # fmt: skip
        assert part in text, part
    plain = card(replace(export, held_out=None, reloaded=None, scored=None))
    assert "held-out" not in plain
    assert "Checked" not in plain


def test_a_scale_is_said():
    """A scale other than 0 stands in the title and the text."""
    export = make_export(scale=0.5)
    assert "# toy with L1H2, L0H0 at 0.5" in card(export)
    assert "their outputs times 0.5" in card(export)


def test_a_folder_is_called_by_its_name(tmp_path):
    """A base in a folder is named by the folder alone, without its path."""
    place = tmp_path / "base"
    place.mkdir()
    export = make_export(base=BaseModel(str(place), None, "float32"))
    text = card(replace(export, command=f"broca.export({str(place)!r}, 'FOLDER')"))
    assert "broca.export('base', 'FOLDER')" in text
    assert "# base without L1H2" in text
    assert str(tmp_path) not in text
