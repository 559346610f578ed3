"""`broca.neurons` is a namespace of functions that no module replaces."""

import importlib
import pkgutil

import pytest

from broca import neurons
from broca.errors import BadInput


@pytest.mark.parametrize("verb", neurons.__all__)
def test_each_verb_is_a_function_whenever_it_is_called(verb):
    """A verb stays a function after every module of both packages is imported."""
    for _ in range(2):
        function = getattr(neurons, verb)
        with pytest.raises(BadInput, match="seeds"):
            function("reference", task="capitals", seeds=1)
        importlib.import_module("broca.verbs.neurons")
        for module in pkgutil.iter_modules(neurons.__path__):
            importlib.import_module(f"broca.neurons.{module.name}")
    assert dir(neurons) == sorted(neurons.__all__)
