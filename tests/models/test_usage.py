"""A model in use is frozen and in evaluation mode, and restored afterwards."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from tiny import tiny_llama, tiny_tokenizer

import broca
from broca.engine import Engine, Job
from broca.errors import BadInput
from broca.options import ModelOptions
from broca.runs.progress import Stages
from broca.runs.session import model_in_use
from broca.tasks.items import Margin, Request


@pytest.fixture
def plain():
    """A caller's model in training, with one module in evaluation mode and one frozen weight."""
    model = tiny_llama()
    model.train()
    model.model.layers[1].mlp.eval()
    model.model.embed_tokens.weight.requires_grad_(False)
    model.model.norm.register_forward_hook(lambda *_: None)
    return model


def state(model):
    """Returns training modes, gradient flags, hooks and replaced `forward` functions."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return (
        [module.training for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
        [list(getattr(module, kind)) for module in model.modules() for kind in hooks],
        ["forward" in module.__dict__ for module in model.modules()],
    )


def test_loading_and_asking_leave_the_model_as_it_was(plain):
    """Loading, measuring, generating and a scan leave the caller's model in its state."""
    before, weights = state(plain), copy.deepcopy(plain.state_dict())
    model = broca.load(plain, tiny_tokenizer())
    assert state(plain) == before
    requests = [Request("loglikelihood", (5, 6, 7), (8, 9))] * 2
    gates = torch.ones(2, 8).numpy()
    gates[1, 3] = 0
    Engine(model).run(requests, gates, torch.tensor([0, 1]).numpy())
    assert model.resumption.possible
    assert model.differentiable
    model.generate("a", max_new_tokens=2)
    assert broca.scan(model).passed
    assert state(plain) == before
    assert all(torch.equal(plain.state_dict()[name], weights[name]) for name in weights)


@pytest.mark.parametrize("mode", [partial(torch.autocast, "cpu"), torch.inference_mode])
def test_a_mode_of_the_caller_changes_no_answer(plain, mode):
    """Loaded and measured within a mode of torch, a model has the answers and slopes without it."""
    request, gates, index = Request("loglikelihood", (5, 6), (8,)), np.ones((1, 8)), np.arange(1)
    slopes = Job(0, gates, index, index, margins=(Margin((request,), None),))

    def measured():
        engine = Engine(broca.load(plain, tiny_tokenizer()))
        with model_in_use(engine.model, ModelOptions(), Stages(None)):
            outputs, answers = engine.run([request], gates, index), engine.answer(slopes)
        return outputs, answers.gradients.tolist(), engine.model.differentiable

    alone = measured()
    with mode():
        assert measured() == alone
        assert torch.is_autocast_enabled("cpu") != torch.is_inference_mode_enabled()


def test_an_error_restores_the_state(plain):
    """An error within nested contexts or `generate` restores the state."""
    model = broca.GatedModel.wrap(plain, tiny_tokenizer(), name="tiny")
    before = state(plain)
    with pytest.raises(ZeroDivisionError), model.in_use(), model.ablated("L0H1"), model.in_use():
        raise ZeroDivisionError
    assert state(plain) == before
    with pytest.raises(ValueError, match="no_such_option"):
        model.generate("a", no_such_option=1)
    assert state(plain) == before
    skipped = plain.model.layers[0]
    skipped.forward = wrapped = skipped.forward  # as another library replaces it
    hidden = torch.zeros(1, 6, 32)
    with pytest.raises(ZeroDivisionError), model.resumption.at(1, hidden, hidden):
        raise ZeroDivisionError
    assert skipped.__dict__.pop("forward") is wrapped
    assert state(plain) == before


def test_copies_in_threads_share_the_state(plain):
    """Copies used in threads keep the weights frozen until the last one ends."""
    model = broca.GatedModel.wrap(plain, tiny_tokenizer(), name="tiny")
    before = state(plain)

    def trainable(lane):
        found = []
        for _ in range(20):
            with lane.in_use():
                found += [weight.requires_grad for weight in plain.parameters()]
        return any(found)

    with ThreadPoolExecutor(4) as threads:
        assert not any(threads.map(trainable, [model, *(model.copy() for _ in range(3))]))
    assert state(plain) == before


def test_a_model_in_training_mode_is_not_run_by_accident(plain):
    """A forward pass in training mode is refused, because it would drop activations at random."""
    model = broca.GatedModel.wrap(plain, tiny_tokenizer(), name="tiny")
    tokens = torch.arange(2, 6)[None]
    with pytest.raises(RuntimeError, match="in training mode"):
        model.forward(tokens, torch.ones_like(tokens), keep=1)


def test_a_trained_model_has_another_fingerprint(plain):
    """The fingerprint of a model, also of a named one, is taken anew once its caller changed it."""
    named = broca.GatedModel.wrap(plain, tiny_tokenizer(), name="tiny", source="tiny")
    with named.in_use():
        before = named.fingerprint
        assert named.copy().fingerprint == before
    wrapped = broca.load(plain, tiny_tokenizer())
    assert wrapped.fingerprint == before
    with torch.no_grad():
        plain.lm_head.weight.add_(1)
    assert named.fingerprint == wrapped.fingerprint != before


def test_a_model_in_memory_says_so(plain, reference):
    """A model in memory has no source, and neither have its copies and pickles."""
    model = broca.load(plain, tiny_tokenizer(), name="mine")
    assert (model.name, model.source, model.copy().source) == ("mine", None, None)
    assert reference.source == reference.copy().source == "reference"
    plain.model.norm._forward_hooks.clear()  # a lambda, which pickle does not take
    with model.in_use():
        sent = pickle.loads(pickle.dumps(model))
    assert (sent.source, sent.fingerprint) == (None, model.fingerprint)
    tokens, logits = torch.arange(2, 6)[None], []
    for one in (model, sent):
        with one.in_use(), torch.no_grad():
            logits.append(one.forward(tokens, torch.ones_like(tokens), keep=4)[0])
    assert torch.equal(*logits)


def test_wrappers_of_a_model_share_its_state(plain):
    """What a wrapper ablates, others know; and it ablates nothing that another thread uses."""
    ablating, asking = (broca.load(plain, tiny_tokenizer()) for _ in range(2))
    before = state(plain)
    with ablating.ablated("L0H1"), ablating.ablated("L0H1"):
        for refused in (
            asking.require_intact, asking.copy, partial(broca.scan, asking),
            partial(broca.chat, asking, [], heads="L0H1"),
        ):  # fmt: skip
            with pytest.raises(BadInput, match=r"ablated already \(L0H1\+L0H1\).*leave `with"):
                refused()
        with asking.in_use(), ablating.in_use():
            assert not plain.training
    with ThreadPoolExecutor(1) as other, asking.in_use():
        with asking.copy().ablated("L0H1"):  # a copy has hooks of its own
            pass
        entered = other.submit(ablating.ablated("L0H1").__enter__)
        with pytest.raises(BadInput, match=r"another thread uses model .* a `copy\(\)`"):
            entered.result()
    asking.require_intact()
    assert state(plain) == before
