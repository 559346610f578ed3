"""`model.ablated` around any forward pass, and `model.generate`."""

import pytest
import torch
from independent import plain_generation, sliced, zeroed_by_hand
from models.architectures import BY_NAME, make_model
from results.samples import make_result
from tiny import tiny_llama, tiny_tokenizer
from tokenizers import decoders
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.prune import l1_unstructured
from transformers import AutoTokenizer, CompileConfig

import broca
from broca.errors import BadInput, UnknownName, UnsupportedModel
from broca.results.base import AblationInfo

HEADS = [(0, 1), (1, 2), (1, 3)]
NAMES = "L0H1+L1H2+L1H3"


@pytest.fixture
def plain():
    """A caller's model."""
    return tiny_llama()


@pytest.fixture
def model(plain):
    """The caller's model with gates on its heads."""
    return broca.load(plain, tiny_tokenizer())


@torch.no_grad()
def logits(model, rows=3):
    """Returns the logits of a padded batch."""
    tokens = torch.randint(2, 258, (rows, 7), generator=torch.Generator().manual_seed(rows))
    attention = torch.ones_like(tokens)
    attention[0, :2] = 0
    return model(input_ids=tokens, attention_mask=attention).logits


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_ablated_equals_weights_zeroed_by_hand(plain, model, rows):
    """A forward pass of the caller's model is ablated within the context and intact afterwards."""
    bare, expected = logits(plain, rows), logits(zeroed_by_hand(plain, HEADS), rows)
    with model.ablated(NAMES):
        ablated = logits(plain, rows)
    torch.testing.assert_close(ablated, expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(ablated, bare, atol=1e-2)
    assert torch.equal(logits(plain, rows), bare)


def test_generations_under_ablation(plain, model):
    """Beam search of transformers and greedy `generate` of broca see the ablation."""
    edited = zeroed_by_hand(plain, HEADS)
    tokens = tiny_tokenizer()("2 + 2 =", return_tensors="pt")
    beams = {"max_new_tokens": 6, "num_beams": 3, "do_sample": False, "pad_token_id": 1}
    greedy = plain_generation(edited, tokens["input_ids"][0].tolist(), new_tokens=12)
    with model.ablated(NAMES):
        assert torch.equal(plain.generate(**tokens, **beams), edited.generate(**tokens, **beams))
        text = model.generate("2 + 2 =", max_new_tokens=12)
    assert text == tiny_tokenizer().decode(greedy, skip_special_tokens=True)
    assert text != model.generate("2 + 2 =", max_new_tokens=12)


@pytest.mark.parametrize(
    "named",
    [
        ["L1H3", "L0H1", "L1H2", "L0H1"],
        make_result(selected=tuple(NAMES.split("+"))),
        broca.ComponentSet(tuple(map(broca.Component.parse, NAMES.split("+")))),
    ],
    ids=["list", "result", "components"],
)
def test_components_are_named_in_several_ways(plain, model, named):
    """A list, a result and a set of components name the same as joined names."""
    with model.ablated(NAMES):
        expected = logits(plain)
    with model.ablated(named):
        assert torch.equal(logits(plain), expected)


def test_nested_gates_multiply(plain, model):
    """A nested context adds its components, and a component in both is scaled twice."""
    with model.ablated(NAMES):
        together = logits(plain)
    with model.ablated("L0H1"), model.ablated(["L1H2", "L1H3"]):
        assert torch.equal(logits(plain), together)
    with model.ablated("L0H1", scale=0.25):
        quarter = logits(plain)
    with model.ablated("L0H1", scale=0.5):
        half = logits(plain)
        with model.ablated("L0H1", scale=0.5):
            torch.testing.assert_close(logits(plain), quarter)
        assert torch.equal(logits(plain), half)
    with model.ablated("L0H1", scale=1.0):
        assert torch.equal(logits(plain), logits(tiny_llama()))


@pytest.mark.parametrize(
    ("architecture", "kind", "names"),
    [
        ("Llama", "kv-groups", "L1G1"), ("Llama", "attention", "L0A"), ("Llama", "mlp", "L1M"),
        ("Llama", "neurons", "L1N3+L0N9"), ("Llama", "layers", "L1"),
        ("Mixtral", "experts", "L0E1"),
    ],
)  # fmt: skip
def test_every_kind_of_component(architecture, kind, names):
    """A model loaded with heads ablates all other kinds as a model loaded with them does."""
    plain = make_model(BY_NAME[architecture])
    heads, gated = (
        broca.GatedModel.wrap(plain, tiny_tokenizer(), name="tiny", components=components)
        for components in ("heads", kind)
    )
    tokens = torch.randint(2, 90, (3, 7), generator=torch.Generator().manual_seed(1))
    gates = torch.from_numpy(~gated.components.mask(names)).float().expand(3, -1)
    with torch.no_grad(), gated.in_use():
        with gated.gates(gates):
            expected, _ = gated.forward(tokens, torch.ones_like(tokens), keep=7)
        with heads.ablated(names):
            torch.testing.assert_close(plain(input_ids=tokens).logits, expected)
        assert (plain(input_ids=tokens).logits - expected).abs().max() > 1e-3


def test_weights_that_are_computed_from_others_have_gates(tmp_path):
    """Parametrized and pruned matrices are found, and no checkpoint is written of them."""
    model, tokens = make_model(BY_NAME["GPT-2"]), torch.arange(3, 9)[None]
    first, second, *_ = model.transformer.h
    weight_norm(first.attn.c_proj)
    weight_norm(second.mlp.c_proj)
    l1_unstructured(second.attn.c_proj, name="weight", amount=1)
    gated = broca.load(model, tiny_tokenizer(), components="heads+mlp")
    with torch.no_grad(), gated.ablated("L0H0+L1H0+L1M"):
        answered = model(tokens).logits
    for module in (first.attn.c_proj, second.attn.c_proj):
        sliced(module, 0, gated.structure.projections[0].head_dim)
    second.mlp.register_forward_hook(lambda _module, _args, output: output * 0)
    torch.testing.assert_close(answered, model(tokens).logits.detach())
    with pytest.raises(UnsupportedModel, match="a rule that computes them"):
        broca.export(gated, tmp_path, heads="L0H0", kind="weights")


def test_training_goes_on_under_ablation(plain, model):
    """Weights get gradients under ablation, except the columns of the ablated head."""
    plain.train()
    with model.ablated("L0H1"):
        assert plain.training
        plain(input_ids=torch.arange(2, 9)[None], labels=torch.arange(2, 9)[None]).loss.backward()
    assert not plain.model.layers[0].self_attn.o_proj.weight.grad[:, 8:16].any()
    assert plain.model.layers[1].self_attn.o_proj.weight.grad.any()


def test_what_cannot_be_ablated_or_generate_is_refused(model):
    """Unknown and malformed names, kinds that the model lacks and a NaN scale are refused."""
    for names, error, message in [
        ("L7H0", UnknownName, "no component 'L7H0'"),
        ("head 3", BadInput, "is not a component name"),
        ("L0E1", UnsupportedModel, "no experts were found"),
        (7, BadInput, "not as int"),
    ]:
        with pytest.raises(error, match=message), model.ablated(names):
            pass
    half = broca.GatedModel.wrap(tiny_llama().bfloat16(), None, name="half")
    for one, scale in ((model, float("nan")), (half, 1e39), (half, 0.999)):
        with pytest.raises(BadInput, match="`scale` must be a finite number"):
            one.ablated("L0H1", scale=scale).__enter__()
    del model.model.generation_config  # as of a class without `generate`
    with pytest.raises(BadInput, match="its class has no `generate`"):
        model.generate("a")


def test_generate_returns_the_continuation_alone(plain, model):
    """`generate` returns the continuation alone, up to a stop string or the limit."""
    tokens = tiny_tokenizer().encode("ab")
    expected = plain_generation(plain, tokens, new_tokens=16)
    assert model.generate("ab", max_new_tokens=3) == tiny_tokenizer().decode(expected[:3])
    assert model.generate("", max_new_tokens=3) == model.generate("<bos>", max_new_tokens=3)
    text = tiny_tokenizer().decode(expected, skip_special_tokens=True)
    assert model.generate("ab", max_new_tokens=16, stop_strings=[text[1]]) == text[:2]
    strips = [decoders.ByteLevel(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]  # as Llama 2's
    model.tokenizer.backend_tokenizer.decoder = decoders.Sequence(strips)
    assert model.tokenizer.decode(tiny_tokenizer().encode(" c")) == "c"
    assert model.text_after(tokens, tiny_tokenizer().encode(" c")) == " c"


SETTINGS = [
    {"do_sample": True, "temperature": 9.0, "repetition_penalty": 3.0},
    {"stop_strings": ["a", "e"]}, {"num_return_sequences": 2}, {"return_dict_in_generate": True},
    {"penalty_alpha": 0.6}, {"dola_layers": "high"}, {"force_words_ids": [[3]]},
    {"guidance_scale": 1.5}, {"min_length": 30}, {"num_beam_groups": 2}, {"max_time": 1e-9},
]  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_no_setting_of_the_model_changes_or_ends_a_greedy_text(plain, model, settings):
    """Whatever a model's generation_config says, texts are those of the plain model."""
    expected = plain_generation(plain, tiny_tokenizer().encode("ab"), new_tokens=16)
    vars(plain.generation_config).update(settings)
    text = tiny_tokenizer().decode(expected, skip_special_tokens=True)
    assert model.generate("ab", max_new_tokens=16) == text
    assert {name: getattr(plain.generation_config, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("model", "tokenizer", "options", "message"),
    [
        (tiny_llama(), None, {}, "`tokenizer` is a NoneType"),
        (tiny_llama(), AutoTokenizer, {}, "`tokenizer` is a type"),
        (tiny_llama(), tiny_tokenizer().backend_tokenizer, {}, "`tokenizer` is a Tokenizer"),
        (tiny_llama(), tiny_tokenizer(), {"dtype": "float16"}, "`dtype` is for models that broca"),
        ("reference-small", None, {"name": "mine"}, "`name` is for models in memory"),
        ("reference-small", tiny_tokenizer(), {}, "`tokenizer` is for models in memory"),
        (torch.nn.Linear(2, 2), tiny_tokenizer(), {}, "`model` is a Linear"),
    ],
)
def test_arguments_of_the_other_kind_of_model_are_refused(model, tokenizer, options, message):
    """Options for named models with one in memory, the reverse, and other objects are refused."""
    with pytest.raises(BadInput, match=message):
        broca.load(model, tokenizer, **options)


@pytest.mark.parametrize("how", ["wrapped", "in place", "its forward"])
@torch.no_grad()
def test_a_compiled_model_is_ablated_too(plain, how):
    """A model compiled as a wrapper or in place is ablated in the context and intact afterwards."""
    tokens = torch.tensor([[3, 4, 5, 6]])
    intact = plain(tokens).logits
    ablated = zeroed_by_hand(plain, [(0, 1)])(tokens).logits
    called = torch.compile(plain, backend="eager") if how == "wrapped" else plain
    if how == "in place":
        plain.compile(backend="eager")
    elif how == "its forward":  # as the guide of transformers does
        plain.forward = torch.compile(plain.forward, backend="eager")
    assert torch.equal(called(tokens).logits, intact)
    model = broca.GatedModel.wrap(called, tiny_tokenizer(), name="compiled")
    assert model.model is plain
    with model.ablated("L0H1"):
        torch.testing.assert_close(called(tokens).logits, ablated)
    assert torch.equal(called(tokens).logits, intact)
    gates = 1 - torch.eye(8)[[1]]
    with model.in_use(), model.gates(gates):
        logits, _ = model.forward(tokens, torch.ones_like(tokens), keep=4)
    torch.testing.assert_close(logits, ablated)
    everywhere = CompileConfig(backend="eager")
    everywhere._compile_all_devices = True  # as on a GPU
    model.generate("a", cache_implementation="static", compile_config=everywhere)
    assert not hasattr(plain, "_compiled_call")


def test_a_result_brings_its_selection_and_its_factor(plain, model):
    """A result's components are scaled as in its run, or by a given factor, or refused."""
    result = make_result(ablation=AblationInfo("zero", 0.5))
    for scale, factor in ((None, 0.5), (0.0, 0.0)):
        with model.ablated("+".join(result.selected), factor):
            expected = logits(plain)
        with model.ablated(result, scale):
            assert torch.equal(logits(plain), expected)
    for other, message in (
        (make_result(ablation=AblationInfo("mean", 0.0)), "mean ablation, which needs the run's"),
        (make_result(selected=(), abstained=True, reason="no harm"), "selects no components"),
    ):
        with pytest.raises(BadInput, match=message), model.ablated(other):
            pass
