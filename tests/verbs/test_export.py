"""`broca.export` writes a run's finding in forms that other libraries load."""

import copy
import errno
import json
from dataclasses import replace

import pytest
import torch
import transformers as hf
from independent import zeroed_by_hand
from journals import totals
from models.architectures import BY_NAME, make_model
from models.test_adapters import adapter, logits
from peft import AutoPeftModelForCausalLM, PeftModel
from results.samples import make_claim, make_export
from safetensors.torch import load_file, save_file
from tiny import save_tiny, tiny_llama, tiny_tokenizer
from verbs.run_folders import localize_into

import broca
from broca.errors import BadInput, SelfTestFailed, UnsupportedModel
from broca.exports import folder as export_folder
from broca.exports import forms
from broca.exports.factors import factors_of
from broca.models.checkpoints import shipped_model_folder
from broca.results.files import encode, write_beside

FORMS = ("adapter", "weights", "heads")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run on `reference-small`."""
    folder = tmp_path_factory.mktemp("run")
    localize_into(
        folder, model="reference-small", task="capitals", method="cs-stratified", rows=600,
        items=12, verify=False, k=2, limit=40,
    )  # fmt: skip
    return folder


def plain():
    """Returns the shipped model `reference-small` as transformers loads it."""
    folder = shipped_model_folder("reference-small")
    return hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def zeroed(heads):
    """Returns the plain model with the output columns of heads `(layer, head)` zeroed."""
    return zeroed_by_hand(plain(), heads)


def test_a_run_is_exported_with_what_it_measured(run, tmp_path):
    """An export has selection, held-out drops and a card, and PEFT loads the adapter."""
    localization = broca.read(run)
    assert localization.selected
    done = broca.export(run, tmp_path / "out")
    assert done == broca.read(tmp_path / "out")
    assert (done.form, done.components) == ("adapter", localization.selected)
    assert done.held_out.drops == localization.verification.drops
    assert done.model.fingerprint == localization.model.fingerprint
    assert done.reloaded.same_continuations == 32
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {*done.files, "README.md", "export.json"}
    assert set(done.files) == {"adapter_config.json", "adapter_model.safetensors"}
    heads = [(int(name[1]), int(name[3:])) for name in localization.selected]
    adapted = PeftModel.from_pretrained(plain(), tmp_path / "out").eval()
    assert torch.allclose(logits(adapted), logits(zeroed(heads)), atol=1e-4)
    again = broca.export(localization, tmp_path / "out", kind="heads")
    assert set(again.files) == {"heads.json"}
    assert not (tmp_path / "out" / "adapter_config.json").exists()
    listed = json.loads((tmp_path / "out" / "heads.json").read_text())["heads"]
    assert sorted(listed) == sorted(map(list, heads))


@pytest.mark.parametrize("kind", FORMS)
def test_every_form_loads_as_its_card_says(kind, small, tmp_path, monkeypatch):
    """The card's code gives the ablated model; the caller's model is left unchanged."""
    before, out = small.fingerprint, tmp_path / "out"
    done = broca.export(small, out, heads="L1H2+L0H1", kind=kind)
    assert (done.components, done.held_out, small.fingerprint) == (("L1H2", "L0H1"), None, before)
    assert done.reloaded.difference < 1e-3
    assert kind in done.command
    monkeypatch.chdir(out if kind == "heads" else tmp_path)
    names, card = {}, (out / "README.md").read_text()
    exec(card.split("```python\n")[1].split("```")[0].replace("PATH", str(out)), names)
    if kind != "heads":
        expected = logits(zeroed([(1, 2), (0, 1)]))
        assert torch.allclose(logits(names["model"]), expected, atol=1e-4)
    if kind == "weights":
        assert hf.AutoTokenizer.from_pretrained(out).encode("2") == small.tokenizer.encode("2")


@pytest.fixture
def adapted(tmp_path):
    """PEFT's model of an adapter that is saved in the folder `lora`, beside its base in `base`."""
    return adapter(save_tiny(tmp_path / "base"), tmp_path / "lora")


def zeroed_logits(model):
    """Returns the logits of a plain model with the columns of L0H1 and L1H2 zeroed."""
    return logits(zeroed_by_hand(model, [(0, 1), (1, 2)]).eval())


def exported_logits(folder, loader=hf.AutoModelForCausalLM):
    """Returns the logits of exported weights, or of an exported adapter."""
    return logits(loader.from_pretrained(folder).eval())


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("merge", [True, False])
def test_a_folder_with_an_adapter_is_exported(adapted, tmp_path, kind, merge, monkeypatch):
    """The export of an adapter's folder, at a relative path, answers as PEFT's zeroed model."""
    monkeypatch.chdir(tmp_path)
    trusted = {"device": "cpu", "trust": str(tmp_path)}  # where the base is
    options = {"heads": "L0H1+L1H2", "merge_adapter": merge, **trusted}
    assert broca.export("lora", "out", kind=kind, **options).reloaded.difference < 1e-4
    monkeypatch.chdir("/")
    expected = zeroed_logits(copy.deepcopy(adapted).merge_and_unload())
    if kind == "weights":
        assert torch.allclose(exported_logits(tmp_path / "out"), expected, atol=1e-4)
    if kind == "adapter":
        exported = exported_logits(tmp_path / "out", AutoPeftModelForCausalLM)
        assert torch.allclose(exported, expected, atol=1e-4)
        again = broca.load(str(tmp_path / "out"), device="cpu")
        assert torch.allclose(logits(again.model), expected, atol=1e-4)
        with pytest.raises(UnsupportedModel, match="it is an adapter of an adapter; use `kind`"):
            broca.export(str(tmp_path / "out"), tmp_path / "more", heads="L0H2", **trusted)


@pytest.mark.parametrize("kind", ["adapter", "heads"])
def test_a_model_of_peft_in_memory_is_exported(adapted, tmp_path, kind):
    """The caller's model is unchanged; weights are written of a merged model alone."""
    before = {name: value.clone() for name, value in adapted.state_dict().items()}
    gated = broca.load(adapted, tiny_tokenizer())
    broca.export(gated, tmp_path / "out", heads="L0H1+L1H2", kind=kind)
    assert all(torch.equal(value, before[name]) for name, value in adapted.state_dict().items())
    with pytest.raises(UnsupportedModel, match=r"merge it .*`merge_and_unload`"):
        broca.export(gated, tmp_path / "weights", heads="L0H1", kind="weights")


def test_a_tokenizer_may_have_more_tokens_and_longer_texts_than_the_model(tmp_path):
    """The check reads prompts without the tokens that the model has no embedding for.

    Prompts and continuations are as long as the model has room for.
    """
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["The", "capital", "once", "<more>"])
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    model = make_model(replace(BY_NAME["GPT-2"], changes={"n_positions": 10}))
    done = broca.export(broca.load(model, tokenizer), tmp_path, heads="L0H1")
    assert (done.reloaded.prompts, done.reloaded.tokens) == (32, 9)
    assert done.reloaded.difference < 1e-4


def test_the_weights_of_a_wrapped_model_are_exported(adapted, tmp_path):
    """A checkpoint with a wrapper's names is exported as plain weights; other forms are refused."""
    file = tmp_path / "base" / "model.safetensors"
    tensors = {f"_orig_mod.{name}": tensor for name, tensor in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})
    base, out = str(tmp_path / "base"), tmp_path / "out"
    broca.export(base, out, heads="L0H1+L1H2", kind="weights", device="cpu")
    assert torch.allclose(exported_logits(out), zeroed_logits(tiny_llama()), atol=1e-4)
    with pytest.raises(UnsupportedModel, match=r"cannot load .*`_orig_mod\.` before them; use"):
        broca.export(base, tmp_path / "other", heads="L0H1", device="cpu")


def test_weights_keep_their_number_format_shards_and_chat_template(tmp_path):
    """Weights keep the base's number format, shards and template; one tensor changes."""
    base = tiny_llama(layers=4).bfloat16()
    base.save_pretrained(tmp_path / "base", max_shard_size=60_000)
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    tokenizer.save_pretrained(tmp_path / "base")
    done = broca.export(str(tmp_path / "base"), tmp_path / "out", heads="L0H1", kind="weights")
    assert done.base.dtype == "bfloat16"
    shards = [name for name in done.files if name.endswith(".safetensors")]
    assert len(shards) == len(list((tmp_path / "base").glob("*.safetensors"))) > 1
    loaded = hf.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype="auto")
    assert loaded.dtype == torch.bfloat16
    before = base.state_dict()
    changed = [n for n, value in loaded.state_dict().items() if not torch.equal(value, before[n])]
    assert changed == ["model.layers.0.self_attn.o_proj.weight"]
    template = hf.AutoTokenizer.from_pretrained(tmp_path / "out").chat_template
    assert template == tokenizer.chat_template


def test_a_factor_that_the_number_format_rounds_is_exported(tmp_path):
    """Rounding in bfloat16, here of more than 0.1 nats, is no other model."""
    half = broca.load("reference", dtype="bfloat16")
    done = broca.export(half, tmp_path, heads="L0H15+L0H5", scale=0.7, kind="weights")
    assert 0.1 < done.reloaded.difference <= done.reloaded.tolerance
    assert "with L0H15, L0H5 at 0.7 (zero ablation)" in next(iter(done.terminal()))


@pytest.mark.long
def test_the_harness_scores_the_export_as_broca_does(small, tmp_path):
    """lm-eval's score of an export equals broca's, whose rows are kept in the journal.

    A check without a task is refused.
    """
    journal = tmp_path / "j.sqlite"
    check = {"heads": "L0H1", "check": True, "task": "capitals", "limit": 30, "journal": journal}
    done = broca.export(small, tmp_path / "out", **check)
    assert (done.scored.task, done.scored.items) == ("capitals", 30)
    assert done.scored.hf == pytest.approx(done.scored.broca, abs=1e-6)
    assert totals(journal)["rows"] == 30
    assert broca.export(small, tmp_path / "out", **check) == done
    assert totals(journal)["rows"] == 30
    with pytest.raises(BadInput, match="`check` needs a `task`"):
        broca.export(small, tmp_path / "other", heads="L0H1", check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": ""}, "no components are named"),
        ({"heads": None}, "no heads are named"),
        ({"heads": "L9H9"}, "has no component 'L9H9'"),
        ({"task": "addition"}, "`task` is for what `check` scores"),
        ({"metric": "acc"}, "`metric` is for what `check` scores"),
        ({"target": [3]}, "`target` is a list: give the name of a model"),
        ({"target": make_claim()}, "`target` is a Claim: give the name of a model"),
    ],
)
def test_bad_input_is_one_line(small, tmp_path, arguments, message):
    """Unknown components, or none, are refused; nothing is written."""
    with pytest.raises(BadInput, match=message):
        broca.export(**{"target": small, "to": tmp_path, "heads": "L0H1", **arguments})
    assert not list(tmp_path.iterdir())


def test_folders_of_others_and_other_weights_are_refused(run, small, tiny, tmp_path):
    """Foreign folders, that of the model, other weights and folders without a run are refused."""
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(BadInput, match="holds other files"):
        broca.export(small, tmp_path, heads="L0H1")
    assert (tmp_path / "README.md").read_text() == "mine"
    base = save_tiny(tmp_path / "base")
    (base / broca.Export.FILE).write_text(encode(make_export()))
    for model in (str(base), broca.load(base)):
        with pytest.raises(BadInput, match="holds the model itself"):
            broca.export(model, base, heads="L0H1", kind="heads")
    with pytest.raises(BadInput, match="are not those of the result"):
        broca.export(tiny, tmp_path / "out", heads=broca.read(run))
    with pytest.raises(BadInput, match="is not a folder of a run"):
        broca.export("reference-small", tmp_path / "out")


def test_an_export_that_answers_otherwise_is_not_left(small, tmp_path, monkeypatch):
    """An export that differs from the ablated model is refused and leaves no file."""
    monkeypatch.setattr(forms, "factors_of", lambda *_: factors_of(small, "L1H1"))
    with pytest.raises(SelfTestFailed, match="does not answer as the ablated model"):
        broca.export(small, tmp_path / "out", heads="L0H1")
    assert not list((tmp_path / "out").iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("file", [None, "README.md", "export.json"])
def test_a_full_disk_is_one_line_and_leaves_what_there_was(small, tmp_path, monkeypatch, file):
    """A new folder stays empty; an export that is replaced stays until all of it is written."""
    old, new = tmp_path / "old", tmp_path / "new"
    broca.export(small, to=old, heads="L0H1")
    before = {path.name: path.read_bytes() for path in old.iterdir()}

    def full(path, *arguments):
        if file is None or path.name == file:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_beside(path, *arguments)

    module, name = (forms, "write_adapter") if file is None else (export_folder, "write_beside")
    monkeypatch.setattr(module, name, lambda *arguments, **_: full(*arguments))
    for to in (old, new):
        with pytest.raises(BadInput, match="no space is left on its disk"):
            broca.export(small, to=to, heads="L1H2")
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    assert not list(new.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new"}
