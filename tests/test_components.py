"""Names and columns of components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broca.components import NAMINGS, Component, ComponentSet
from broca.errors import BadInput, UnknownName


@given(st.sampled_from([*NAMINGS]), st.integers(0, 200), st.integers(0, 9999))
def test_the_name_of_a_component_reads_back(kind, layer, index):
    """Parsing a component's name gives the component, with or without an index."""
    indexed = kind in ("head", "kv-group", "expert", "neuron")
    component = Component(layer, kind, index) if indexed else Component(layer, kind)
    assert Component.parse(component.name) == component


@pytest.mark.parametrize(
    "text", ["", "L", "H3", "L1H", "L1M2", "L-1H2", "l1h2", "L1H2x", 5, "L" + "9" * 5000]
)
def test_text_that_is_no_name_is_refused(text):
    """Text that is not a component name raises `BadInput`."""
    with pytest.raises(BadInput, match="not a component name"):
        Component.parse(text)


@pytest.fixture
def heads():
    """Six heads in two layers."""
    return ComponentSet(tuple(Component(layer, "head", h) for layer in range(2) for h in range(3)))


def test_names_become_a_mask_or_are_refused(heads):
    """Names joined by + become a boolean vector; a missing head is refused with a similar name."""
    np.testing.assert_array_equal(heads.mask("L0H1+L1H2"), [0, 1, 0, 0, 0, 1])
    message = r"no component 'L1H3'.*did you mean 'L1H\d'.*L0H0 to L1H2"
    with pytest.raises(UnknownName, match=message):
        heads.column("L1H3")
    with pytest.raises(ValueError, match="twice"):
        ComponentSet((Component(0, "head", 0), Component(0, "head", 0)))


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("L1H2", [2]), ("L1G1", [4, 5, 6, 7]), ("L1A", [*range(8)]), ("L1", [*range(8)]),
        ("L1M", []), ("L1E7", []), ("L1N40", []),
    ],
)  # fmt: skip
def test_components_have_query_heads(name, heads):
    """A head, a KV group, an attention layer and a layer have query heads."""
    component = Component.parse(name)
    assert list(component.heads(8, 2)) == heads
    assert NAMINGS[component.kind].only_heads == (bool(heads) and name != "L1")
