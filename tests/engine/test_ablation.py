"""Zero, mean and resample ablation."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch
from engine.shared_work import assert_same
from independent import plain_loglikelihood, sliced
from models.architectures import BY_NAME, make_model
from tiny import tiny_llama, tiny_tokenizer

from broca.engine import Ablation, Engine, EngineOptions, OutputNorms, donor_activations
from broca.engine.ablation import ablations_of
from broca.errors import BadInput
from broca.models import GatedModel, GatePoint
from broca.tasks import Request

PROMPTS = [(3, 4, 5), (9, 8, 7, 6, 5, 4), (20,), (100, 101, 102, 103)]


@torch.no_grad()
def inputs_by_hand(model, prompt):
    """Returns the input of each layer's output projection for one prompt, `(tokens, 32)`."""
    inputs = []
    with ExitStack() as hooks:
        for layer in model.model.layers:
            record = layer.self_attn.o_proj.register_forward_pre_hook(
                lambda _, args: inputs.append(args[0][0])
            )
            hooks.enter_context(record)
        model(input_ids=torch.tensor([prompt]), use_cache=False)
    return inputs


@pytest.mark.parametrize("kind", ["mean", "resample"])
def test_replacement_is_the_donors_activation(tiny, kind):
    """An ablated head outputs its mean, or its activation at one token of another prompt."""
    bare, request = tiny_llama(), Request("loglikelihood", (30, 31, 32, 33), (7,))
    donors = donor_activations(tiny, PROMPTS, Ablation(kind, seed=5))
    by_hand, rng = [inputs_by_hand(bare, prompt)[1] for prompt in PROMPTS], np.random.default_rng(5)
    if kind == "mean":
        expected = torch.cat(by_hand).mean(0)[None]
    else:
        expected = torch.stack([inputs[int(rng.integers(len(inputs)))] for inputs in by_hand])
    torch.testing.assert_close(donors[tiny.points[1]], expected, atol=1e-5, rtol=1e-5)
    count, never = len(expected), GatePoint(torch.nn.Identity(), "never", "output", 0, 1)
    assert len(donor_activations(tiny, PROMPTS, Ablation(kind), points=[never])[never]) == count
    gates = 1 - tiny.components.mask("L1H2")[None].astype(np.float32)
    answers = Engine(tiny, donors=donors).run(
        [request] * count, gates, np.zeros(count, dtype=int), np.arange(count)
    )
    for answer, vector in zip(answers, expected, strict=True):
        with sliced(bare.model.layers[1].self_attn.o_proj, 16, 24, vector[16:24]):
            value, _ = plain_loglikelihood(bare, request.context, request.continuation)
        assert answer.value == pytest.approx(value, abs=1e-4)


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
    options = EngineOptions(token_budget=budget)
    together = Engine(tiny, options, donors=donors).run(requests, gates, index, donor)
    engine = Engine(tiny, donors=donors)
    alone = [
        engine.run([request], gates, index[[number]], donor[[number]])[0]
        for number, request in enumerate(requests)
    ]
    assert_same(together, alone)


def test_means_are_of_all_tokens_where_layers_skip_positions_without_logits():
    """The last MLP of Gemma 4 would run at the last position of a prompt alone."""
    bare, outputs = make_model(BY_NAME["Gemma 4 (text)"]), []
    model = GatedModel.wrap(bare, tiny_tokenizer(), name="gemma", components="mlp")
    donors = donor_activations(model, PROMPTS[:2], Ablation("mean"))
    last = bare.model.layers[2].mlp.down_proj
    with torch.no_grad(), last.register_forward_hook(lambda *_: outputs.append(_[2][0])):
        for prompt in PROMPTS[:2]:
            bare(input_ids=torch.tensor([prompt]), use_cache=False)
    expected = torch.cat(outputs).mean(0)[None]
    torch.testing.assert_close(donors[model.points[2]], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("zeros",), "`ablation` 'zeros' is unknown"), (("zero", 1.0), "`scale` 1 ablates nothing"),
     (("zero", 1 + 1e-12), "`scale` 1 ablates"), (("zero", float("nan")), "`scale` nan"),
     (("zero", 1e39), r"`scale` 1e\+39")],
)  # fmt: skip
def test_ablation_that_does_not_exist_is_refused(arguments, message):
    """An unknown ablation, and a scale that is 1 or no number in single precision, are refused."""
    with pytest.raises(BadInput, match=message):
        Ablation(*arguments)


def test_experts_allow_only_zero_ablation():
    """A model with routed experts allows only zero ablation: experts have no output to replace."""
    routed = GatedModel.wrap(
        make_model(BY_NAME["Mixtral"]), tiny_tokenizer(), name="m", components="heads+experts"
    )
    assert ablations_of(routed) == ("zero",)


def test_norms_are_those_of_the_projections_input(tiny):
    """Mean norms equal those that a plain hook records, prompt by prompt without padding."""
    by_hand = zip(*(inputs_by_hand(tiny.model, prompt) for prompt in PROMPTS), strict=True)
    expected = [torch.cat(layer).unflatten(1, (4, 8)).norm(dim=-1).mean(0) for layer in by_hand]
    engine = Engine(tiny)
    (norms,) = OutputNorms.observe(engine, [OutputNorms("heads", PROMPTS)])
    np.testing.assert_allclose(norms, torch.cat(expected), rtol=1e-5)
    assert engine.tokens == sum(map(len, PROMPTS))
