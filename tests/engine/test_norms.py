"""Output norms of components."""

import numpy as np
import torch

from broca.engine import Engine, OutputNorms

PROMPTS = [(5, 9, 4), (7, 3, 8, 20, 31)]


def test_norms_are_those_of_the_projections_input(tiny):
    """Sums of norms equal those that a plain hook records, prompt by prompt without padding."""
    engine = Engine(tiny)
    vectors = OutputNorms.observe(engine, [OutputNorms("heads", prompt) for prompt in PROMPTS])
    for prompt, vector in zip(PROMPTS, vectors, strict=True):
        expected = np.zeros(8)
        for layer, block in enumerate(tiny.model.model.layers):
            inputs = []
            hook = block.self_attn.o_proj.register_forward_pre_hook(
                lambda _module, args, inputs=inputs: inputs.append(args[0])
            )
            with torch.no_grad():
                tiny.model(torch.tensor([prompt]))
            hook.remove()
            heads = inputs[0].reshape(len(prompt), 4, 8).norm(dim=-1)
            expected[4 * layer : 4 * layer + 4] = heads.sum(0).numpy()
        np.testing.assert_allclose(vector, expected, rtol=1e-5)
    assert engine.tokens == sum(len(prompt) for prompt in PROMPTS)


def test_a_sequence_has_its_norms_in_any_batch(tiny):
    """Norms of a sequence agree whether it is measured alone or with longer ones."""
    observations = [OutputNorms("heads", prompt) for prompt in PROMPTS]
    together = OutputNorms.observe(Engine(tiny), observations)
    alone = [OutputNorms.observe(Engine(tiny), [observation])[0] for observation in observations]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    assert observations[0].key != OutputNorms("neurons", PROMPTS[0]).key
