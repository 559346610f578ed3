"""Planted sets and exhaustive effects."""

import zlib

import numpy as np
import pytest

from broca.errors import BadInput
from broca.measurement import Plan
from broca.studies.methods.truth import Exhaustive, ExhaustiveFolder, planted_sets, top_recall


def test_planted_sets_are_those_of_the_card():
    """Of `planted`; nothing is planted elsewhere."""
    assert planted_sets("planted")["facts"] == {"L0H9", "L0H14"}
    assert planted_sets("reference") == {}
    assert planted_sets("/some/folder") == {}


def test_effects_are_those_of_single_losses(arena, tmp_path, make_cell):
    """The same as measuring one head on these items by hand; kept, and not measured again."""
    folder = ExhaustiveFolder(tmp_path)
    folder.measure(arena, ["rhyming"], ["accuracy", "probability"], items=12)
    cell = make_cell("rhyming", model=arena.model.fingerprint)
    executor = arena.executor("probability")
    spent = executor.rows
    folder.measure(arena, ["rhyming"], ["accuracy", "probability"], items=12)
    assert executor.rows == spent
    found = folder.find(cell, "probability")
    assert found.items == 12
    assert found.names == tuple(arena.model.components.names)
    rng = np.random.default_rng([0xEC4A, zlib.crc32(b"rhyming")])
    usable = [p for p in arena.places["rhyming"].tolist() if p in arena.margins["rhyming"]]
    drawn = rng.permutation(usable)[:12]
    worst = int(np.argmin(found.effects))
    masks = np.zeros((2, 96), dtype=bool)
    masks[1, worst] = True
    intact, lost = executor.run(Plan.crossed(masks, drawn)).mask_means()
    assert found.effects[worst] == pytest.approx(lost - intact, abs=1e-5)
    assert folder.find(make_cell("addition", model=arena.model.fingerprint), "accuracy") is None


def test_top_recall_counts_only_what_harms(make_cell):
    """A component that harms nothing is no truth to recall."""
    known = Exhaustive("m", "t", "accuracy", 9, ("A", "B", "C", "D"), (-0.1, 0.0, -0.4, 0.2))
    assert known.worst(5) == {"A", "C"}
    assert known.worst(1) == {"C"}
    assert top_recall(make_cell(selected=("C", "D")), known) == 0.5
    assert top_recall(make_cell(refused="no"), known) is None
    assert top_recall(make_cell(), None) is None


def test_a_damaged_file_is_refused(tmp_path, make_cell):
    """One line that says what to do."""
    (tmp_path / "exhaustive-m-addition-accuracy.json").write_text("{}")
    with pytest.raises(BadInput, match="delete it"):
        ExhaustiveFolder(tmp_path).find(make_cell(), "accuracy")
