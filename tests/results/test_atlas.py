"""`atlas.json` is read as it was written, and other content is refused."""

import json

import pytest

from broca.errors import BadInput
from broca.results import atlas as results
from broca.results.base import AblationInfo, ModelInfo
from broca.results.files import decode, encode


def make_atlas(**changes):
    """Returns a small finished atlas of two tasks and three heads."""
    values = {
        "model": ModelInfo("toy", "abc123", "LlamaForCausalLM", 1, 3, 1, "float32"),
        "tasks": (
            results.AtlasTask("adding", "sums", "exact_match", 0.975, 40, False, -0.31, 0.52),
            results.AtlasTask("sorting", "order", "acc", 0.251, 40, True, -0.01, -0.02),
        ),
        "components": ("L0H2", "L0H0", "L0H1"),
        "effects": ((-0.42, -0.11, 0.01), (-0.3, 0.0, 0.02)),
        "low": ((-0.5, -0.2, -0.1), (-0.4, -0.1, -0.1)),
        "high": ((-0.34, -0.02, 0.12), (-0.2, 0.1, 0.14)),
        "universal": (results.UniversalComponent("L0H2", -0.42, ("adding",), {"adding": -0.42}),),
        "selections": (
            results.Selection(
                "adding",
                (),
                (results.SelectedComponent("L0H0", -0.11, (-0.2, -0.02), -0.11, (-0.2, -0.02)),),
                "",
            ),
            results.Selection("sorting", ("adding",), (), "the intact model cannot do the task"),
        ),
        "clusters": (results.Cluster(("L0H2", "L0H0"), {"adding": -0.27, "sorting": -0.15}),),
        "task_clusters": (("adding",),),
        "groups": results.GroupTest(
            2, (results.HeadSet("sums", ("L0H0", "L0H1")),), 1, 0.33, 1.4, 0.35, 5000
        ),
        "groups_note": "",
        "response": "probability",
        "kinds": "heads",
        "ablation": AblationInfo("zero", 0.0),
        "masks": 660,
        "share": 0.2,
        "least": 0.05,
        "k": 5,
        "resamples": 200,
        "shrunk": False,
        "seed": 0,
        "cost": results.AtlasCost(1600, 80, 123456, 9.87, 1680),
        "notes": ("three prompts were cut",),
        "broca": "0.1.0",
    }
    values["universal"] = (
        results.UniversalComponent("L0H2", -0.42, ("adding",), {"adding": -0.42, "sorting": -0.3}),
    )
    return results.Atlas(**{**values, **changes})


@pytest.mark.parametrize("changes", [{}, {"groups": None, "groups_note": "no groups", "notes": ()}])
def test_round_trip(changes, tmp_path):
    """An atlas that is read from a folder, a file or text equals the written one."""
    atlas = make_atlas(**changes)
    (tmp_path / "atlas.json").write_text(encode(atlas))
    assert decode(results.Atlas, encode(atlas)) == atlas
    assert results.Atlas.read(tmp_path) == results.Atlas.read(tmp_path / "atlas.json") == atlas
    assert json.loads(encode(atlas))["schema"] == 2


def test_cells_and_selections_by_name():
    """Effects and selections are looked up by the names of tasks and components."""
    atlas = make_atlas()
    assert atlas.effect("sorting", "L0H1") == 0.02
    assert atlas.selected("adding") == ("L0H0",)
    assert atlas.selected("sorting") == ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("tasks"),
        lambda data: data.update(masks="many"),
        lambda data: data["effects"].pop(),
        lambda data: data["low"][0].pop(),
        lambda data: data["tasks"][0].update(intact=None),
        lambda data: data.update(surplus=1),
        lambda data: data["groups"].update(p="small"),
    ],
)
def test_what_is_no_atlas_is_refused(damage):
    """A missing, surplus or wrong part is refused."""
    data = json.loads(encode(make_atlas()))
    damage(data)
    with pytest.raises(BadInput, match="not an atlas of broca"):
        decode(results.Atlas, json.dumps(data))


def test_refusals_name_the_cause(tmp_path):
    """The message distinguishes another schema, a missing file and other content."""
    data = {**json.loads(encode(make_atlas())), "schema": 3}
    with pytest.raises(BadInput, match="schema 3"):
        decode(results.Atlas, json.dumps(data))
    with pytest.raises(BadInput, match="run `broca atlas` first"):
        results.Atlas.read(tmp_path)
    (tmp_path / "atlas.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="cannot be read"):
        results.Atlas.read(tmp_path)
    for text in ("", "[]", "null", '{"schema": 1}'):
        with pytest.raises(BadInput, match="not an atlas"):
            decode(results.Atlas, text)
