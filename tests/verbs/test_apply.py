"""`broca.apply` makes a whole model from a patch and its base."""

import pytest
import torch
import transformers as hf

import broca
from broca.errors import BadInput
from broca.models import GatedModel
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The folder of a tiny sharded model in bfloat16."""
    folder = tmp_path_factory.mktemp("base")
    tiny_llama(layers=4).bfloat16().save_pretrained(folder, max_shard_size=60_000)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def patch(base, tmp_path_factory):
    """A patch of the base."""
    folder = tmp_path_factory.mktemp("patch")
    broca.export(str(base), folder, heads="L2H1", kind="patch", scale=0.5)
    return folder


def test_a_patched_model_equals_the_exported_weights(base, patch, tmp_path):
    """Every tensor is equal; shards, number format and tokenizer are those of the base."""
    folder = broca.apply(patch, str(base), tmp_path / "patched")
    broca.export(str(base), tmp_path / "weights", heads="L2H1", kind="weights", scale=0.5)
    patched, exported = (
        hf.AutoModelForCausalLM.from_pretrained(place, dtype="auto").state_dict()
        for place in (folder, tmp_path / "weights")
    )
    assert all(torch.equal(patched[name], exported[name]) for name in exported)
    assert {tensor.dtype for tensor in patched.values()} == {torch.bfloat16}
    assert len(list(folder.glob("*.safetensors"))) == len(list(base.glob("*.safetensors")))
    assert hf.AutoTokenizer.from_pretrained(folder).encode("a")


def test_other_weights_are_refused(patch, tmp_path):
    """A patch is refused for other weights than those it was made for."""
    other = GatedModel.wrap(tiny_llama(layers=4, seed=1).bfloat16(), tiny_tokenizer(), name="other")
    with pytest.raises(BadInput, match=r"made for other weights .*'other' has"):
        broca.apply(patch, other, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_refused(base, patch, tmp_path):
    """A folder that holds other files is refused."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="holds other files"):
        broca.apply(patch, str(base), tmp_path)
