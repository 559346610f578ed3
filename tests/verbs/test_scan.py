"""`broca.scan` describes a model."""

from dataclasses import replace

import pytest

import broca
from broca.errors import BadInput
from broca.integrations import BrocaLM
from broca.options import ExecutorOptions, ModelOptions, ScanOptions
from tests.tiny import tiny_gated


def test_a_shipped_model_is_described():
    """A scan has the components, the points of the gates and a passed self-test."""
    stages = []
    scan = broca.scan("reference-small", on_progress=lambda stage, progress: stages.append(stage))
    assert (scan.model, scan.architecture) == ("reference-small", "LlamaForCausalLM")
    assert (scan.layers, scan.heads, scan.kv_heads) == (4, 12, 3)
    assert (scan.components[0], scan.components[-1], len(scan.components)) == ("L0H0", "L3H11", 48)
    assert scan.gate_points == tuple(f"model.layers.{n}.self_attn.o_proj" for n in range(4))
    assert scan.passed
    assert len(scan.self_test) == 4
    assert scan.not_covered == scan.without_mlp_block == scan.norms_across_heads == ()
    assert scan.description.startswith("reference-small: 48 heads in 4 layers")
    assert stages[0] == "loading the model reference-small"
    failed = replace(scan.self_test[0], passed=False)
    assert not replace(scan, self_test=(failed, *scan.self_test[1:])).passed


@pytest.mark.parametrize(
    "given", [{"components": "mlp"}, {"dtype": "float16"}, {"merge_adapter": False}]
)
@pytest.mark.parametrize("call", [broca.scan, broca.compare, BrocaLM])
def test_options_of_loading_are_refused_for_a_loaded_model(call, given):
    """They are not ignored, unless they say what the model is, or how Ray's workers load it."""
    model = tiny_gated(components="heads+mlp")
    refused = f"`{next(iter(given))}` is for loading a model, and 'tiny'"
    with pytest.raises(BadInput, match=refused):
        call(model, **given)
    with pytest.raises(BadInput, match=refused):
        broca.scan(settings=ScanOptions(model=model, model_options=ModelOptions(**given)))
    ray = ExecutorOptions(executor="ray")
    assert model.require_unused({"executor_options": ray, "trust_remote_code": True}) is None
    assert broca.scan(model, components="heads+mlp", dtype="auto").kinds == "heads+mlp"
