"""The subject of a stress test is drawn by the seed and named in the settings."""

import pytest

from broca.errors import BadInput
from broca.models import GatedModel
from broca.stress_tests.families import load_family
from broca.stress_tests.subject import StressSubject
from broca.testing import tiny_llama, tiny_tokenizer

FAMILIES = (load_family("letters"), load_family("sums"))
NUMBERS = {"pairs": 16, "sets": 3, "seed": 0}


def subject(model, names=("L3H12", "L0H3"), families=FAMILIES, **numbers):
    """Returns a subject with 16 pairs and three random sets."""
    return StressSubject.of(model, names, families, **{**NUMBERS, **numbers})


def test_random_sets_are_of_the_same_layers(planted):
    """A random set has as many heads per layer as the tested set and shares no head with it."""
    drawn = subject(planted)
    assert drawn.columns == tuple(planted.components.columns(drawn.names))
    layers = sorted(planted.components[column].layer for column in drawn.columns)
    assert len(drawn.random_sets) == 3
    for columns in drawn.random_sets:
        assert sorted(planted.components[column].layer for column in columns) == layers
        assert not set(columns) & set(drawn.columns)
    assert len(drawn.pairs) == 16
    assert len(drawn.all_heads) == 96


def test_another_question_has_other_settings(planted):
    """The settings differ with the heads, the numbers, the seed and the families."""
    settings = [subject(planted).settings]
    settings += [subject(planted, **{name: 20}).settings for name in NUMBERS]
    settings.append(subject(planted, names=("L0H3", "L3H12")).settings)
    settings.append(subject(planted, families=FAMILIES[:1]).settings)
    assert all(settings.count(subject_settings) == 1 for subject_settings in settings)
    assert subject(planted).settings == settings[0]


def test_other_components_than_heads_are_refused():
    """A model whose components are not heads is refused."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="mlp")
    with pytest.raises(BadInput, match="not of mlp"):
        subject(model, names=("L0M",))
