"""The summary and table of an export."""

from simulated import toy_verification

from broca.results.base import AblationInfo, ModelInfo
from broca.results.export import BaseModel, Export, HeldOut, ReloadCheck, ScoreCheck


def make_export(*, form="adapter", scale=0.0, base=None):
    """Returns a small export with every optional part."""
    verification = toy_verification()
    held_out = HeldOut(
        verification.task, verification.verdict, verification.drops, verification.baseline,
        verification.after,
    )  # fmt: skip
    return Export(
        form=form,
        model=ModelInfo("toy", "abc", architecture="ToyForCausalLM", layers=2, heads=4, kv_heads=2),
        base=base or BaseModel("toy", None, "float32"),
        components=("L1H2", "L0H0"),
        ablation=AblationInfo("zero", scale),
        held_out=held_out,
        files={"adapter_model.safetensors": 1184, "adapter_config.json": 400},
        reloaded=ReloadCheck({"peft": "0.21.2"}, 32, 12, 1e-6, 1e-4, 31),
        scored=ScoreCheck("adding", "acc", 40, 0.25, 0.25),
        command="broca.export('toy', 'FOLDER', heads='L1H2+L0H0', kind='adapter', scale=0)",
    )


def test_the_summary_says_what_was_checked():
    """The summary has size, libraries and scores."""
    assert make_export().summary() == (
        "adapter of toy without L1H2, L0H0",
        "2 files, 1,584 bytes",
        "loaded by peft 0.21.2: 31 of 32 continuations as broca's, log-probabilities within "
        "1.0e-06",
        "lm-eval's hf scores 0.2500 on adding, broca 0.2500 (40 items)",
    )
    assert make_export(scale=0.5).summary()[0] == "adapter of toy with L1H2, L0H0 at 0.5"


def test_the_components_are_the_selection_and_the_lines():
    """An export has `selected` and one record for each component, like other results."""
    export = make_export(scale=0.5)
    assert export.selected == ("L1H2", "L0H0")
    assert export.to_frame().to_dict("list") == {
        "component": ["L1H2", "L0H0"], "ablation": ["zero", "zero"], "scale": [0.5, 0.5],
    }  # fmt: skip
