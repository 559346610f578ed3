"""The studies of neurons: overlaps by their definitions, and the items in several wordings."""

import re
from collections import Counter

import numpy as np
import pytest


def test_overlaps_are_what_the_definitions_say(script):
    """Common neurons are a share of the larger set and of the union; chance is that of sizes."""
    shares = script("neuron_studies").shares
    first, second = np.array([1, 2, 3, 4]), np.array([3, 4, 9])
    assert shares(first, second, 200) == pytest.approx((2 / 4, 2 / 5, 12 / 200 / 4))
    assert np.isnan(shares(first[:0], first[:0], 200)).all()
    rng = np.random.default_rng(0)
    drawn = [
        shares(*(rng.choice(200, size, replace=False) for size in (30, 50)), 200)
        for _ in range(2000)
    ]
    of_larger, _, chance = np.mean(drawn, axis=0)
    assert of_larger == pytest.approx(chance, rel=0.05)


def test_items_are_what_they_say(script):
    """Contents have several prompts; sums are right, and pairs share what their relation says."""
    studies = script("neuron_studies")
    for task in studies.PARAPHRASED:
        rows = studies.rows_of(task)
        prompts = {(row["content"], row["prompt"]) for row in rows}
        assert min(Counter(content for content, _ in prompts).values()) >= 4
    for row in studies.rows_of("addition"):
        assert sum(map(int, re.findall(r"\d+", row["prompt"]))) == int(row["answer"])
    for pair in studies.rows_of("pairs"):
        first, second = (pair[side]["prompt"].split() for side in ("first", "second"))
        if pair["relation"] == "same content, other capability":
            assert first[0] != second[0]
            assert sorted(first[1:]) == sorted(second[1:])
