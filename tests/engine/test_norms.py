"""Output norms of components."""

import numpy as np
import torch

from broca.engine import output_norms

PROMPTS = [(5, 9, 4), (7, 3, 8, 20, 31)]


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
    np.testing.assert_allclose(output_norms(tiny, PROMPTS), expected / tokens, rtol=1e-5)
