"""Zero, mean and resample ablation, and scaling."""

from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from independent import plain_loglikelihood, sliced

from broca.engine import Ablation, Engine, EngineOptions, OutputNorms, donor_activations
from broca.engine.ablation import ABLATIONS, ablations_of
from broca.errors import BadInput
from broca.models import GatedModel
from broca.tasks import Request
from broca.testing import tiny_llama, tiny_tokenizer

PROMPTS = [(3, 4, 5), (9, 8, 7, 6, 5, 4), (20,), (100, 101, 102, 103)]


def inputs_by_hand(model, prompt):
    """Returns the input of each layer's output projection for one prompt, `(tokens, 32)`."""
    inputs = []
    with ExitStack() as hooks, torch.no_grad():
        for layer in model.model.layers:
            projection = layer.self_attn.o_proj
            record = projection.register_forward_pre_hook(lambda _, args: inputs.append(args[0][0]))
            hooks.enter_context(record)
        model(input_ids=torch.tensor([prompt]), use_cache=False)
    return inputs


@pytest.mark.parametrize("kind", ["mean", "resample"])
def test_replacement_is_the_donors_activation(tiny, kind):
    """An ablated head outputs its mean, or its activation at one token of another prompt."""
    bare, tokens = tiny_llama(), (30, 31, 32, 33)
    ablation = Ablation(kind, seed=5)
    donors = donor_activations(tiny, PROMPTS, ablation)
    by_hand = [inputs_by_hand(bare, prompt)[1] for prompt in PROMPTS]
    if kind == "mean":
        expected = torch.cat(by_hand).mean(0)[None]
    else:
        rng = np.random.default_rng(5)
        expected = torch.stack(
            [
                activations[int(rng.integers(len(prompt)))]
                for activations, prompt in zip(by_hand, PROMPTS, strict=True)
            ]
        )
    torch.testing.assert_close(donors[tiny.points[1]], expected, atol=1e-5, rtol=1e-5)
    gates = np.ones((1, 8), dtype=np.float32)
    gates[0, 4 + 2] = 0  # L1H2
    requests = [Request("loglikelihood", tokens, (7,))] * len(expected)
    answers = Engine(tiny, donors=donors).run(
        requests, gates, np.zeros(len(expected), dtype=int), np.arange(len(expected))
    )
    for answer, vector in zip(answers, expected, strict=True):
        with sliced(bare.model.layers[1].self_attn.o_proj, 16, 24, vector[16:24]):
            value, _ = plain_loglikelihood(bare, tokens, (7,))
        assert answer.value == pytest.approx(value, abs=1e-4)


def test_scale_multiplies_the_heads_output(tiny):
    """A gate of 0.3 equals the head's output-projection columns multiplied by 0.3."""
    bare, tokens = tiny_llama(), (30, 31, 32, 33)
    bare.model.layers[0].self_attn.o_proj.weight.data[:, 8:16] *= 0.3
    expected, _ = plain_loglikelihood(bare, tokens, (7,))
    gates = Ablation(scale=0.3).gates(tiny.components.mask("L0H1")[None])
    request = Request("loglikelihood", tokens, (7,))
    (answer,) = Engine(tiny).run([request], gates, np.zeros(1, dtype=int))
    assert answer.value == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["mean", "resample"])
@pytest.mark.parametrize("budget", [20, 100_000])
def test_batches_with_replacements_equal_rows_alone(tiny, kind, budget):
    """Rows of a batch keep their own donors when other rows leave and enter."""
    rng = np.random.default_rng(0)
    donors = donor_activations(tiny, PROMPTS, Ablation(kind))
    gates = (rng.random((4, 8)) > 0.4).astype(np.float32)
    prompts = [tuple(int(t) for t in rng.integers(2, 258, n)) for n in (2, 9, 4, 6, 3, 7)]
    requests = [Request("generate_until", p, max_new_tokens=3 + n) for n, p in enumerate(prompts)]
    requests += [Request("loglikelihood", p, (5, 6)) for p in prompts]
    index = rng.integers(0, 4, len(requests))
    donor = rng.integers(0, len(donors[tiny.points[0]]), len(requests))
    together = Engine(tiny, EngineOptions(token_budget=budget), donors=donors).run(
        requests, gates, index, donor
    )
    for number, request in enumerate(requests):
        alone = Engine(tiny, donors=donors).run([request], gates, index[[number]], donor[[number]])[
            0
        ]
        if request.kind == "loglikelihood":
            assert together[number].value == pytest.approx(alone.value, abs=1e-4)
        else:
            assert together[number] == alone


def test_mean_ablation_works_on_blocks():
    """Mean ablation of blocks replaces their outputs with means and differs from zero ablation."""
    model = GatedModel.wrap(
        tiny_llama(), tiny_tokenizer(), name="tiny", components="mlp+layers+kv-groups"
    )
    donors = donor_activations(model, PROMPTS, Ablation("mean"))
    assert all(donors[point].shape == (1, 32) for point in model.points)
    gates = (~model.components.mask("L1M")[None]).astype(np.float32)
    request = Request("loglikelihood", (30, 31, 32), (7,))
    answers = [
        Engine(model, donors=replacements).run([request], gates, np.zeros(1, dtype=int))[0].value
        for replacements in (donors, {})
    ]
    assert abs(answers[0] - answers[1]) > 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("zeros",), "`ablation` 'zeros' is unknown"), (("zero", 1.0), "`scale` 1 ablates nothing"),
     (("zero", float("nan")), "`scale` nan")],
)  # fmt: skip
def test_ablation_that_does_not_exist_is_refused(arguments, message):
    """An unknown ablation and a scale of 1 or NaN are refused in one line."""
    with pytest.raises(BadInput, match=message):
        Ablation(*arguments)


def test_records_say_what_a_model_can_be_ablated_by():
    """A model with routed experts allows only zero ablation: experts have no output to replace."""

    class Model:
        def __init__(self, *places):
            self.points = [SimpleNamespace(place=place) for place in places]

    assert ablations_of(Model("input", "output")) == ("zero", "mean", "resample")
    assert ablations_of(Model("input", "routing")) == ("zero",)
    assert [name for name in ABLATIONS if Ablation(name).needs_donors] == ["mean", "resample"]
    assert [name for name in ABLATIONS if Ablation(name).draws_donors] == ["resample"]


SEQUENCES = ((5, 9, 4), (7, 3, 8, 20, 31))


def test_norms_are_those_of_the_projections_input(tiny):
    """Mean norms equal those that a plain hook records, prompt by prompt without padding."""
    expected, tokens = np.zeros(8), sum(map(len, SEQUENCES))
    for prompt in SEQUENCES:
        for layer, inputs in enumerate(inputs_by_hand(tiny.model, prompt)):
            heads = inputs.reshape(len(prompt), 4, 8).norm(dim=-1)
            expected[4 * layer : 4 * layer + 4] += heads.sum(0).numpy()
    engine = Engine(tiny)
    (norms,) = OutputNorms.observe(engine, [OutputNorms("heads", SEQUENCES)])
    np.testing.assert_allclose(norms, expected / tokens, rtol=1e-5)
    assert engine.tokens == tokens
