"""Exports are loaded onto their base by other libraries alone."""

import pytest
import torch
from broca.exports.checking import answers, compare_answers, prompt_tokens
from broca.exports.patch import Patch, write_patch
from broca.exports.reloading import LIBRARIES, Origin, reload

from broca.exports.adapter import write_adapter
from broca.exports.factors import factors_of
from broca.exports.head_list import head_list, write_head_list
from broca.exports.weights import changed_tensors, with_tensors, write_checkpoint
from broca.models import load

HEADS = "L0H1+L1H2"


def write(form, model, folder, origin):
    """Writes an export in one of the forms."""
    if form == "adapter":
        write_adapter(factors_of(model, HEADS), folder, base=origin.location)
    elif form == "heads":
        write_head_list(head_list(model, HEADS.split("+"), 0.0), folder)
    elif form == "patch":
        tensors = changed_tensors(model, HEADS)
        write_patch(Patch(model.fingerprint, model.dtype, tensors), folder)
    else:
        with with_tensors(model.model, changed_tensors(model, HEADS)):
            write_checkpoint(model.model, model.tokenizer, folder)


@pytest.mark.parametrize("form", LIBRARIES)
@pytest.mark.parametrize("name", ["tiny", "reference"])
def test_every_form_answers_as_the_ablated_model(form, name, request, tmp_path):
    """Each form, reloaded, answers as the ablated model; the model in memory stays intact."""
    model = request.getfixturevalue(name)
    origin = Origin.of(model)
    assert (origin.location is None) == (name == "tiny")
    write(form, model, tmp_path, origin)
    prompts = prompt_tokens(model.tokenizer, model.vocabulary)[:6]
    intact = answers(model.model, prompts)
    with model.ablated(HEADS):
        expected = answers(model.model, prompts)
    reloaded = answers(reload(form, tmp_path, origin), prompts)
    check = compare_answers(expected, reloaded, dtype="float32", libraries=LIBRARIES[form])
    assert set(check.libraries) == set(LIBRARIES[form])
    assert not torch.equal(intact.continued, expected.continued)
    assert torch.equal(answers(model.model, prompts).continued, intact.continued)


def test_the_base_is_loaded_in_its_number_format():
    """A shipped base is loaded from its folder in the number format of the model."""
    model = load("reference-small", device="cpu", dtype="bfloat16")
    origin = Origin.of(model)
    assert (origin.dtype, origin.revision) == ("bfloat16", None)
    assert origin.load().dtype == torch.bfloat16
