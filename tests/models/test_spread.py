"""Models spread over devices or offloaded, on devices that a CPU can stand for."""

import accelerate
import numpy as np
import pytest
import torch
from engine.shared_work import assert_same
from tiny import tiny_llama, tiny_tokenizer

from broca.engine import Engine
from broca.models import GatedModel, load, self_test
from broca.tasks import Request

PLACES = {
    "model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk",
    "model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "cpu",
}  # fmt: skip


@pytest.fixture(params=["second layer on disk", "all in the CPU's memory"])
def spread(request, tmp_path):
    """A model whose weights are loaded only while their module runs."""
    model = tiny_llama()
    if request.param == "second layer on disk":
        return accelerate.dispatch_model(model, PLACES, main_device="cpu", offload_dir=tmp_path)
    return accelerate.cpu_offload(model, execution_device="cpu")


def test_it_answers_as_the_whole_model_does(spread):
    """An offloaded model gives the fingerprint and answers of a whole one, and stays offloaded."""
    projection = spread.model.layers[1].self_attn.o_proj
    assert projection.weight.is_meta
    intact, offloaded = (load(m, tiny_tokenizer(), name="m") for m in (tiny_llama(), spread))
    assert all(check.passed for check in self_test(offloaded))
    assert offloaded.fingerprint == intact.fingerprint
    requests = [Request("loglikelihood", (3, 4, 5), (6, 7))] * 40
    requests += [Request("generate_until", (8, 9, 10 + n), max_new_tokens=4) for n in range(40)]
    gates = (np.random.default_rng(0).random((80, 8)) > 0.3).astype(np.float32)
    expected = Engine(intact).run(requests, gates, np.arange(80))
    assert_same(Engine(offloaded).run(requests, gates, np.arange(80)), expected)
    with intact.ablated("L0H1+L1M"), offloaded.ablated("L0H1+L1M"):
        assert offloaded.generate("ab", max_new_tokens=4) == intact.generate("ab", max_new_tokens=4)
    assert projection.weight.is_meta, "its weights were left where they are"
    assert offloaded.differentiable


@pytest.mark.parametrize("replaced", [False, True], ids=["zeros", "means"])
def test_gates_act_on_the_device_of_their_layer(replaced):
    """Gates act on a second layer that lies on another device than the first.

    The device is torch's `meta`: it computes shapes alone and refuses tensors of other devices.
    """
    gated = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="m", components="heads+mlp")
    body = gated.model.model
    for module in (body.layers[1], body.norm, gated.model.lm_head):
        accelerate.hooks.add_hook_to_module(
            module.to("meta"), accelerate.hooks.AlignDevicesHook("meta", io_same_device=False)
        )
    tokens = torch.arange(2, 12)[None].repeat(3, 1)
    gates = torch.ones(3, len(gated.components))
    gates[1, gated.components.columns(["L0H2", "L0M", "L1H1", "L1M"])] = 0
    means = {point: torch.zeros(3, 32) for point in gated.points} if replaced else None
    with gated.in_use(), torch.no_grad(), gated.gates(gates, replacement=means):
        logits, _ = gated.forward(tokens, torch.ones_like(tokens), keep=2)
    assert (logits.device.type, *logits.shape[:2]) == ("meta", 3, 2)
