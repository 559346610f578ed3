"""Matrices of effects, task by component, whose truth is known."""

import numpy as np

from broca.verification.effects import Matrix

CAPABILITIES = ("sums", "sums", "words", "facts", "code")


def matrix(effects, *, spread=0.02, usable=None, capabilities=CAPABILITIES, least=0.05, seed=0):
    """Effects with resamples of a given spread around them."""
    effects = np.asarray(effects, dtype=float)
    noise = np.random.default_rng(seed).normal(0, spread, (200, *effects.shape))
    usable = np.ones(len(effects), dtype=bool) if usable is None else np.array(usable)
    return Matrix(effects, effects + noise - noise.mean(axis=0), usable, capabilities, least)


def effects_of(cells, components=20):
    """A matrix that is zero but for some cells."""
    effects = np.zeros((5, components))
    for (task, component), value in cells.items():
        effects[task, component] = value
    return effects
