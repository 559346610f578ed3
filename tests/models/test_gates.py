"""Gates are exact for every row, and the kinds of component have theirs."""

import pytest
from tiny import tiny_llama, tiny_tokenizer

from broca.components import Component
from broca.errors import BadInput, UnknownName
from broca.models import GatedModel, kinds_of
from broca.models.gates import KINDS


@pytest.mark.parametrize("way_back", ["none", "cut off"])
def test_a_model_without_a_way_back_is_not_differentiable(way_back):
    """A model is not differentiable if an operation refuses gradients or stops them."""
    plain = tiny_llama()

    def refuse(_module, _args, output):
        if output.requires_grad:
            raise RuntimeError("no way back")

    def cut(_module, _args, output):
        return output.detach()

    projection = plain.model.layers[0].self_attn.o_proj
    assert GatedModel.wrap(plain, tiny_tokenizer(), name="tiny").differentiable
    projection.register_forward_hook(refuse if way_back == "none" else cut)
    assert not GatedModel.wrap(plain, tiny_tokenizer(), name="tiny").differentiable


def test_a_kind_finds_components_of_the_kind_of_its_example():
    """Kinds are joined in their order; each but experts finds components like its example."""
    kinds = [name for name in KINDS if name != "experts"]
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="+".join(kinds))
    found = dict.fromkeys(component.kind for component in model.components)
    assert list(found) == [Component.parse(KINDS[name].example).kind for name in kinds]
    assert kinds_of(model.components) == "+".join(kinds)
    assert {point.place for point in model.points} == {KINDS[name].place for name in kinds}


def test_kinds_that_make_no_sense_are_refused():
    """A repeated or misspelt kind is refused by its name."""
    with pytest.raises(BadInput, match=r"`components` 'heads\+heads' names a kind twice"):
        GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="heads+heads")
    with pytest.raises(UnknownName, match="did you mean 'heads'"):
        GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="haeds")
