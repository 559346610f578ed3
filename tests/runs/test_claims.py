"""A claim takes from a finished run what the call leaves out."""

import json
from dataclasses import replace

import pytest
from verbs.run_folders import localize_into

from broca.errors import BadInput
from broca.options import AblationOptions, ModelOptions, RunOptions
from broca.results.localization import Localization
from broca.runs.claims import claim_of

NOTHING = {
    "model": None, "task": None, "heads": None, "neurons": None, "order": (), "others": "auto",
    "same_skill": (), "seed": None, "limit": None, "ablation": None, "run_options": RunOptions(),
}  # fmt: skip
"""A call that names nothing."""


def claim(run=None, **arguments):
    """Returns the claim of a call."""
    return claim_of(run, **{**NOTHING, **arguments})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The out folder of a small run with mean ablation that selected components."""
    folder = tmp_path_factory.mktemp("claims") / "out"
    localize_into(
        folder, model="reference-small", task="sorting", others=["capitals"], method="one-shot",
        rows=200, items=8, k=2, verify=False, ablation="mean", seed=3,
        task_options={"limit": 40},
    )  # fmt: skip
    assert Localization.read(folder).selected
    return folder


@pytest.mark.parametrize("as_folder", [True, False])
def test_a_run_gives_what_the_call_leaves_out(run, as_folder):
    """Model, task, components, order, others, seed, ablation and options are those of the run."""
    result = Localization.read(run)
    claimed = claim(run if as_folder else result)
    assert (claimed.model, claimed.task, claimed.heads) == (
        "reference-small",
        "sorting",
        result.selected,
    )
    assert claimed.order[: len(result.selected)] == [*result.selected]
    assert (claimed.others, claimed.seed, claimed.ablation.kind) == (["capitals"], 3, "mean")
    assert claimed.run_options.task_options.limit == 40
    assert claimed.run_options.model_options.components == result.components


def test_the_call_replaces_what_the_run_gives(run):
    """What the call names counts, a kind of ablation that is the default one too."""
    claimed = claim(
        run, model="elsewhere", task="capitals", others=[], same_skill="addition, brackets",
        seed=0, ablation="zero", order=["L1H1"],
    )  # fmt: skip
    assert (claimed.model, claimed.task, claimed.others) == ("elsewhere", "capitals", [])
    assert claimed.same_skill == ["addition", "brackets"]
    assert (claimed.seed, claimed.ablation.kind, claimed.order) == (0, "zero", ["L1H1"])
    options = RunOptions(ablation_options=AblationOptions(ablation="resample"))
    assert claim(run, run_options=options).ablation.kind == "resample"


def test_other_weights_are_refused(run, reference):
    """A claim of a run holds for the run's weights, a claim by name for any."""
    with pytest.raises(BadInput, match="weights of 'reference' are not those of the run"):
        claim(run).require_weights(reference)
    claim(model="reference", task="sorting", heads="L0H1").require_weights(reference)


def test_neurons_join_the_heads():
    """Heads and neurons become one list, and the model's components both kinds."""
    joined = claim(model="m", task="t", heads=["L0H1", "L0H2"], neurons="L2N17")
    assert joined.heads == "L0H1+L0H2+L2N17"
    assert joined.run_options.model_options.components == "heads+neurons"
    alone = claim(model="m", task="t", neurons="L2N17")
    assert alone.heads == "L2N17"
    assert alone.run_options.model_options.components == "neurons"
    options = RunOptions(model_options=ModelOptions(components="mlp"))
    layers = claim(model="m", task="t", heads="L0M", neurons="L2N17", run_options=options)
    assert layers.run_options.model_options.components == "mlp+neurons"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to verify"),
        ({"heads": "L0H1", "task": "sorting"}, "need the `model`"),
        ({"heads": "L0H1", "model": "reference"}, "need the `task`"),
        ({"heads": "L0H1", "model": "reference", "task": "sorting", "limit": 7}, "at least 8"),
        ({"run": "./nowhere"}, "does not exist"),
    ],
)
def test_incomplete_claims_are_refused(arguments, message):
    """A call without components, model or task, or of a missing folder, is refused."""
    with pytest.raises(BadInput, match=message):
        claim(**arguments)


def test_a_run_that_selected_nothing_or_components_twice_are_refused(run, tmp_path):
    """There is nothing to verify, or the call and the run both name components."""
    result = Localization.read(run)
    with pytest.raises(BadInput, match="`run` names the components"):
        claim(result, heads="L0H1")
    empty = replace(result, selected=())
    with pytest.raises(BadInput, match="the run selected nothing"):
        claim(empty)
    data = json.loads((run / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**data, "selected": []}))
    with pytest.raises(BadInput, match=f"the run in '{tmp_path}' selected nothing"):
        claim(tmp_path)
