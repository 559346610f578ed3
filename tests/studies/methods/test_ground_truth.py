"""Planted sets and effects of single ablations."""

import zlib

import numpy as np
import pytest

from broca.measurement import Plan
from broca.studies.methods.ground_truth import (
    SingleEffects,
    planted_recall,
    planted_sets,
    single_effects,
)


def test_planted_sets_are_those_of_the_card():
    """`planted` has the sets of its card; other models have none."""
    assert planted_sets("planted")["facts"] == {"L0H9", "L0H14"}
    assert planted_sets("reference") == {}
    assert planted_sets("/some/folder") == {}


def test_planted_sets_are_recovered_where_they_are_learned():
    """Recall is the share of the planted set, with extras counted; None without planted skill."""
    heads = ("L0H0", "L0H6")  # rhyming's, by the model's card
    assert planted_recall("planted", "rhyming", heads, 0.8) == (1.0, 0)
    assert planted_recall("planted", "rhyming", (heads[0], "L5H5"), 0.8) == (0.5, 1)
    assert planted_recall("planted", "rhyming", (), 0.8) == (0.0, 0)
    assert planted_recall("planted", "knowledge", heads, 0.44) is None
    assert planted_recall("reference", "rhyming", heads, 0.9) is None


def test_effects_are_those_of_single_ablations(whole_run):
    """The effects equal single ablations measured directly, and a second call measures nothing."""
    by_response = {
        response: single_effects(whole_run, "rhyming", response, items=12)
        for response in ("accuracy", "probability")
    }
    effects = by_response["probability"]
    spent = whole_run.finish()
    assert single_effects(whole_run, "rhyming", "probability", items=12) == effects
    assert whole_run.finish() == spent
    assert effects.items == 12
    assert tuple(effects.effects) == whole_run.model.components.names
    places = whole_run.tasks.places["report"]["rhyming"]
    usable = whole_run.referenced("probability", {"rhyming": places}, otherwise=None)
    rng = np.random.default_rng([0xEC4A, zlib.crc32(b"rhyming")])
    drawn = rng.permutation(usable.places["rhyming"])[:12]
    worst = min(effects.effects, key=effects.effects.get)
    masks = np.zeros((2, 96), dtype=bool)
    masks[1, whole_run.model.components.columns([worst])] = True
    plan = Plan.crossed(masks, drawn, response="probability")
    intact, ablated = whole_run.measure(plan).mask_means()
    assert effects.effects[worst] == pytest.approx(ablated - intact, abs=1e-5)


def test_top_recall_counts_only_what_harms():
    """Recall counts only components whose ablation harms; it is None where none harms."""
    effects = SingleEffects(9, {"A": -0.1, "B": 0.0, "C": -0.4, "D": 0.2})
    assert effects.worst(5) == {"A", "C"}
    assert effects.worst(1) == {"C"}
    assert effects.recall(("C", "D"), 5) == 0.5
    assert SingleEffects(9, {"A": 0.0}).recall(("A",), 5) is None
