"""Every covered architecture, against weights zeroed by hand in plain transformers."""

import copy
import re
from contextlib import suppress

import numpy as np
import pytest
import torch
import transformers
from docs.scripts import DOCS, script
from engine.shared_work import run
from independent import plain_generation, sliced
from models.architectures import ARCHITECTURES, HEADS, LAYERS, VOCABULARY, make_model
from tiny import tiny_tokenizer

import broca
from broca.engine.ablation import Ablation, donor_activations
from broca.errors import UnsupportedModel
from broca.integrations.lm_eval import BrocaLM
from broca.models import GatedModel, self_test
from broca.tasks import Request

PAGE = (DOCS / "architectures.md").read_text()
NAMES = [architecture.name for architecture in ARCHITECTURES]


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=NAMES)
def case(request):
    """An architecture and its tiny model."""
    return request.param, make_model(request.param)


def wrap(case, components="heads"):
    """Returns the model with gates."""
    return GatedModel.wrap(case[1], tiny_tokenizer(), name=case[0].name, components=components)


def batch(rows=3, length=9):
    """Returns tokens, left-padded to different lengths, and their attention mask."""
    drawn = torch.Generator().manual_seed(4)
    tokens = torch.randint(3, VOCABULARY, (rows, length), generator=drawn)
    attention = torch.ones_like(tokens)
    for row in range(rows):
        attention[row, : 2 * row] = 0
    return tokens, attention


def inputs_of(model, path):
    """Returns the weight of a projection, `(inputs, outputs)`, as a view that can be written."""
    module = model.get_submodule(path)
    return module.weight.data if type(module).__name__ == "Conv1D" else module.weight.data.T


def head_dim(case):
    """Returns the width of a head of the projection that the test names."""
    architecture, model = case
    path = architecture.projection.format(architecture.attention_layers[0])
    return len(inputs_of(model, path)) // HEADS


def zero_heads(case, model, layer, start, stop):
    """Zeroes heads by hand: columns of the projection, or entries before a norm, for good."""
    architecture, width = case[0], head_dim(case)
    if architecture.norm is None:
        inputs_of(model, architecture.projection.format(layer))[start * width : stop * width] = 0
    else:
        norm = model.get_submodule(architecture.norm.format(layer))
        sliced(norm, start * width, stop * width)


def test_structure_is_what_the_test_knows(case):
    """The structure has the projections, heads, MLP blocks and experts that the test lists."""
    architecture, model = case
    structure = wrap(case).structure
    assert [projection.path for projection in structure.projections] == [
        architecture.projection.format(layer) for layer in architecture.attention_layers
    ]
    assert {projection.kv_heads for projection in structure.projections} == {architecture.kv_heads}
    assert [projection.norm and projection.norm.path for projection in structure.projections] == [
        architecture.norm and architecture.norm.format(layer)
        for layer in architecture.attention_layers
    ]
    assert [layer.layer for layer in structure.not_covered] == [
        layer for layer in range(LAYERS) if layer not in architecture.attention_layers
    ]
    for part in structure.parts:
        if architecture.down is not None:
            assert part.feed_forward.path == architecture.down.format(part.layer)
        if architecture.experts is not None:
            assert part.experts.path == architecture.experts.format(part.layer)
            assert part.expert_count == 4
        assert (part.experts is None) == (architecture.experts is None)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_self_test_passes(case):
    """The self-test passes for heads, for groups with MLP blocks, and for heads with neurons."""
    for components in ("heads", "kv-groups+mlp", *["heads+neurons"] * (case[0].down is not None)):
        for check in self_test(wrap(case, components)):
            assert check.passed, f"{components}: {check.name}: {check.detail}"


def test_gated_heads_equal_zeroed_columns_in_generation(case):
    """Greedy tokens of prompts of several lengths under masks equal those of the edited copy."""
    architecture, model = case
    edited = copy.deepcopy(model)
    for layer in architecture.attention_layers:
        zero_heads(case, edited, layer, 1, 2)
    tokens, attention = batch()
    prompts = [row[kept == 1].tolist() for row, kept in zip(tokens, attention, strict=True)]
    gated = wrap(case)
    closed = gated.components.mask([f"L{layer}H1" for layer in architecture.attention_layers])
    gates = np.stack([np.ones(len(closed)), ~closed]).astype(np.float32)
    requests = [Request("generate_until", tuple(p), max_new_tokens=5) for p in prompts]
    answers, _ = run(gated, requests, gates)
    expected = [
        plain_generation(plain, prompt, new_tokens=5)
        for plain in (model, edited)
        for prompt in prompts
    ]
    for answer, text in zip(answers, expected, strict=True):
        assert answer.text == tiny_tokenizer().decode(text, skip_special_tokens=True)


def ablate_by_hand(case, model, kind, layer):
    """Ablates a part of a layer in plain transformers: zeroes weights, or passes the layer."""
    architecture = case[0]
    group = HEADS // architecture.kv_heads
    heads = {"last head": (HEADS - 1, HEADS), "kv-groups": (0, group), "attention": (0, HEADS)}
    if kind in heads:
        zero_heads(case, model, layer, *heads[kind])
    elif kind == "layers":

        def pass_through(_module, args, kwargs, output):
            before = args[0] if args else kwargs["hidden_states"]
            return (before, *output[1:]) if isinstance(output, tuple) else before

        path = architecture.projection.split(".{}")[0]
        model.get_submodule(f"{path}.{layer}").register_forward_hook(pass_through, with_kwargs=True)
    elif kind == "experts":
        model.get_submodule(architecture.experts.format(layer)).down_proj.data[2] = 0
    elif kind == "neurons":
        inputs_of(model, architecture.down.format(layer))[:48] = 0
    elif architecture.down is not None:
        for parameter in model.get_submodule(architecture.down.format(layer)).parameters():
            torch.nn.init.zeros_(parameter)
    else:
        block = model.get_submodule(architecture.experts.format(layer).removesuffix(".experts"))
        for name, parameter in block.named_parameters():
            if "down_proj" in name:
                torch.nn.init.zeros_(parameter)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("last head", [f"L{{}}H{HEADS - 1}"]), ("kv-groups", ["L{}G0"]), ("attention", ["L{}A"]),
        ("mlp", ["L{}M"]), ("layers", ["L{}"]), ("experts", ["L{}E2"]),
        ("neurons", [f"L{{}}N{neuron}" for neuron in range(48)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_gated_components_equal_parts_ablated_by_hand(case, kind, names):
    """Gated components of each kind equal a copy edited by hand, in prefill."""
    architecture, model = case
    if (kind == "experts" and not architecture.experts) or (
        kind == "neurons" and not architecture.down
    ):
        return
    attends = kind in ("last head", "kv-groups", "attention")
    layer = architecture.attention_layers[-1] if attends else LAYERS - 1
    edited = copy.deepcopy(model)
    ablate_by_hand(case, edited, kind, layer)
    tokens, _ = batch(rows=1, length=40 if kind == "experts" else 9)  # the router chooses it
    gated = wrap(case, "heads" if kind == "last head" else kind)
    closed = gated.components.mask([name.format(layer) for name in names])
    gates = torch.from_numpy(~closed).float()[None]
    with torch.no_grad():
        expected, intact = (plain(tokens, use_cache=False).logits for plain in (edited, model))
        with gated.gates(gates):
            ablated, _ = gated.forward(tokens, torch.ones_like(tokens), keep=tokens.shape[1])
    torch.testing.assert_close(ablated, expected, atol=2e-4, rtol=1e-4)
    assert (expected - intact).abs().max() > 1e-2, "the ablation changed nothing"


def test_slopes_of_gates_equal_finite_differences(case):
    """Slopes beside an ablated head equal finite differences, to 2 % of the largest slope."""
    model = wrap(case)
    tokens, attention = batch(rows=2)
    gates = torch.ones(2, len(model.components))
    gates[:, 1] = 0
    weights = torch.randn(2, 1, VOCABULARY, generator=torch.Generator().manual_seed(2))

    def total(gates):
        with model.gates(gates):
            logits, _ = model.forward(tokens, attention, keep=1)
        return (logits.double() * weights).sum()

    assert model.differentiable
    leaf = gates.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(total(leaf), leaf)
    for column in (0, 1, len(model.components) - 1):
        step = torch.zeros_like(gates)
        step[1, column] = 5e-3
        with torch.no_grad():
            difference = (total(gates + step) - total(gates - step)) / 1e-2
        assert abs(slopes[1, column] - difference) < 0.02 * slopes.abs().max(), column


def test_model_runs_from_the_middle(case):
    """A pass resumed at a layer, or at its output projection, gives the logits of a whole pass.

    BLOOM adds the residual stream within its attention, and BitNet mixes the heads before its
    projection: their attention is run whole.
    """
    model = wrap(case)
    assert model.resumption.possible == (case[0].name != "Gemma 4 (text)")  # it reads lower keys
    if not model.resumption.possible:
        return
    layers = tuple(projection.layer for projection in model.structure.projections)
    tokens, attention = batch()
    with torch.no_grad():
        with model.resumption.layer_inputs() as inputs, model.resumption.head_outputs() as heads:
            full, _ = model.forward(tokens, attention, keep=1)
        assert tuple(heads) == (() if case[0].name in ("BLOOM", "BitNet") else layers)
        for layer in range(LAYERS):
            for outputs in (None, heads.get(layer)):
                with model.resumption.at(layer, inputs[layer], outputs):
                    part, _ = model.forward(tokens, attention, keep=1)
                torch.testing.assert_close(part, full, atol=1e-5, rtol=1e-5)


def test_the_page_names_what_the_tests_know_by_heart():
    """`docs/architectures.md` names these architectures and no others."""
    _, listed = PAGE.split("## Known by heart\n")
    listed = listed.split("whole:")[1].split(".\n")[0]
    assert " ".join(listed.split()).split(", ") == NAMES


@pytest.fixture(scope="module")
def trials():
    """The script behind `make architectures`, as a module."""
    return script("architectures")


def test_page_has_a_line_for_every_class_of_transformers(trials):
    """The page has a line for each class of the installed transformers."""
    lines = {
        tuple(re.findall(r"`([^`]+)`", line)[:2])
        for line in PAGE.split(trials.BLOCK[0])[1].splitlines()
        if line.startswith("| `")
    }
    assert lines == set(trials.classes())
    assert f"transformers {transformers.__version__}" in PAGE


QUICK = (
    "llama", "falcon_h1", "mbart", "mamba", "mistral", "gemma3_text", "gpt_oss",
    "gpt_neo", "bamba", "mpt", "cohere2", "bloom", "phi3", "llama4_text", "bart", "openai-gpt",
    "dots3_note_text", "laguna",
)  # fmt: skip
"""Kinds that `make test` tries; `make test-long` tries all."""


def assert_trial_is_on_the_page(trials, kind, architecture):
    """Tries a class and asserts that the page has its outcome and where its heads are gated.

    A proven class equals plain transformers with weights zeroed by hand, and lm-eval's `hf` one
    request at a time: choices, texts and whole documents behind a shared context, of unequal
    lengths, longer than a window, of a single token and truncated.
    """
    trial = trials.tried(kind, architecture)
    if trial.outcome != "proven":
        assert f"| `{kind}` | `{architecture}` | {trials._cell(trial.message)} |" in PAGE
        return
    assert f"| `{kind}` | `{architecture}` | `{trial.message}` | {trial.heads} |" in PAGE
    assert trial.difference is None or trial.difference < 1e-4
    assert trial.parity < trials.PARITY


@pytest.mark.parametrize("kind", QUICK)
def test_lines_of_the_page_are_what_a_trial_gives(trials, kind):
    """The page's lines for some kinds of model equal those of a trial."""
    (architecture,) = (name for model_type, name in trials.classes() if model_type == kind)
    assert_trial_is_on_the_page(trials, kind, architecture)


@pytest.mark.long
def test_every_class_equals_zeroed_weights_and_hf(trials):
    """All other classes of the page are tried again, too."""
    for kind, architecture in trials.classes():
        if kind not in QUICK:
            assert_trial_is_on_the_page(trials, kind, architecture)


@pytest.mark.parametrize(
    ("kind", "architecture", "components"),
    [
        ("gemma3n_text", "Gemma3nForCausalLM", "layers"),  # streams before the rows
        ("hy_v4", "HYV4ForCausalLM", "layers"),  # and after the tokens
        ("openai-gpt", "OpenAIGPTLMHeadModel", "layers"),  # a list
        ("falcon", "FalconForCausalLM", "mlp"),  # attention is added to its output in place
    ],
)
def test_a_block_that_a_row_ablates_adds_its_mean(trials, kind, architecture, components):
    """A row's block adds its mean, to every stream, as by hand; another row is intact."""
    model = trials.tiny_model(kind, architecture, {})
    gated = broca.load(model, tiny_tokenizer(), components=components)  # a row may ablate by zeros
    point, tokens = gated.points[1], batch(rows=1, length=11)[0]

    def by_hand(_module, args, kwargs, output):
        leaving = output[0] if isinstance(output, tuple | list) else output
        entering = args[0] if args else kwargs["hidden_states"]
        if components == "mlp":
            entering = torch.zeros_like(leaving)
        after = entering + (leaving - entering).mean(leaving.shape.index(11), keepdim=True)
        return after.expand_as(leaving) if leaving is output else (after, *output[1:])

    donors = donor_activations(gated, tokens.tolist(), Ablation("mean"))
    instead = {point: values.expand(2, -1) for point, values in donors.items()}
    with torch.no_grad():
        intact = model(input_ids=tokens).logits
        with point.module.register_forward_hook(by_hand, with_kwargs=True):
            expected = torch.cat([intact, model(input_ids=tokens).logits])
        with gated.gates(torch.tensor([[1, 1, 1], [1, 0, 1.0]]), replacement=instead):
            both = tokens.repeat(2, 1)
            rows, _ = gated.forward(both, torch.ones_like(both), keep=11)
    torch.testing.assert_close(rows, expected, atol=2e-4, rtol=1e-4)
    assert gated.resumption.possible == (kind != "gemma3n_text")  # its rows do not come first
    assert (expected[0] - expected[1]).abs().max() > 1e-2, "the ablation changed nothing"


def test_parity_sees_an_ablated_head(trials, monkeypatch):
    """A trial in which broca's answers are those without a head fails, with a text or a number."""
    monkeypatch.setattr(trials, "BrocaLM", lambda **arguments: BrocaLM(ablate="L0H1", **arguments))
    trial = trials.tried_once("llama", "LlamaForCausalLM", trials.VARIANTS[0])
    assert trial.outcome == "failed"
    assert "`hf`" in trial.message


def test_an_mlp_is_its_block_or_is_refused(trials):
    """The MLP of gpt-oss is no router, that of Llama 4 no shared expert."""

    def wrapped(kind, architecture):
        for variant in trials.VARIANTS:
            with suppress(Exception):  # the first variant that the class can run
                model = trials.tiny_model(kind, architecture, variant)
                break
        return GatedModel.wrap(model, tiny_tokenizer(), name=kind, components="mlp")

    gated = wrapped("gpt_oss", "GptOssForCausalLM")
    assert [point.path for point in gated.points] == [f"model.layers.{n}.mlp" for n in range(3)]
    for kind, architecture in (("llama4_text", "Llama4ForCausalLM"), ("zamba", "ZambaForCausalLM")):
        with pytest.raises(UnsupportedModel, match="no mlp were found"):
            wrapped(kind, architecture)
