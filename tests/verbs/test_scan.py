"""`broca.scan` describes a model."""

from dataclasses import replace

import broca


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
