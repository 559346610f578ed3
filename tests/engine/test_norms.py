"""Output norms of components."""

import numpy as np
import torch

from broca.engine import Engine, OutputNorms

PROMPTS = ((5, 9, 4), (7, 3, 8, 20, 31))


def test_norms_are_those_of_the_projections_input(tiny):
    """Mean norms equal those that a plain hook records, prompt by prompt without padding."""
    expected, tokens = np.zeros(8), 0
    for prompt in PROMPTS:
        for layer, block in enumerate(tiny.model.model.layers):
            inputs = []
            hook = block.self_attn.o_proj.register_forward_pre_hook(
                lambda _module, args, inputs=inputs: inputs.append(args[0])
            )
            with torch.no_grad():
                tiny.model(torch.tensor([prompt]))
            hook.remove()
            heads = inputs[0].reshape(len(prompt), 4, 8).norm(dim=-1)
            expected[4 * layer : 4 * layer + 4] += heads.sum(0).numpy()
        tokens += len(prompt)
    engine = Engine(tiny)
    (norms,) = OutputNorms.observe(engine, [OutputNorms("heads", PROMPTS)])
    np.testing.assert_allclose(norms, expected / tokens, rtol=1e-5)
    assert engine.tokens == tokens


def test_observations_are_measured_one_by_one(tiny):
    """Each observation has its own mean; components and sequences make its key."""
    observations = [OutputNorms("heads", (prompt,)) for prompt in PROMPTS]
    first, second = OutputNorms.observe(Engine(tiny), observations)
    (joint,) = OutputNorms.observe(Engine(tiny), [OutputNorms("heads", PROMPTS)])
    lengths = [observation.length for observation in observations]
    np.testing.assert_allclose(np.average([first, second], axis=0, weights=lengths), joint, 1e-5)
    keys = {observation.key for observation in (*observations, OutputNorms("neurons", PROMPTS[:1]))}
    assert len(keys) == 3
