"""A tiny model with neurons, and questions for it."""

import pytest

from broca.models import GatedModel
from broca.neurons import NeuronModel, Text, from_texts
from broca.tasks import RequestTokenizer
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture
def neurons():
    """Two layers of 64 neurons, random weights; new for every test, as training changes them."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="heads+neurons")
    return NeuronModel(model)


@pytest.fixture
def tokenizer(neurons):
    """Makes requests for the tiny model."""
    return RequestTokenizer(neurons.model.tokenizer, max_length=neurons.model.max_length)


@pytest.fixture
def ask(tokenizer):
    """Makes a question set of short texts."""

    def make(count=8, *, name="letters", start=0):
        texts = [
            Text(f"say {chr(97 + (start + n) % 26)}", f"{chr(65 + (start + n) % 26)}", f"c{n // 2}",
                 f"w{n % 2}")
            for n in range(count)
        ]  # fmt: skip
        return from_texts(name, texts, tokenizer)

    return make
