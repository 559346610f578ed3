"""Effect matrices, `(tasks, components)`, with known true effects."""

import numpy as np

from broca.atlases.findings import EffectMatrix

CAPABILITIES = ("sums", "sums", "words", "facts", "code")


def matrix(effects, *, spread=0.02, usable=None, capabilities=CAPABILITIES, seed=0):
    """Returns an `EffectMatrix` with 200 resamples of standard deviation `spread`."""
    effects = np.asarray(effects, dtype=float)
    noise = np.random.default_rng(seed).normal(0, spread, (200, *effects.shape))
    usable = np.ones(len(effects), dtype=bool) if usable is None else np.array(usable)
    return EffectMatrix(
        effects, effects + noise - noise.mean(axis=0), usable, capabilities, np.ones(len(effects))
    )


def effects_of(cells, components=20):
    """Returns an effect matrix of five tasks that is zero except for the given cells."""
    effects = np.zeros((5, components))
    for (task, component), value in cells.items():
        effects[task, component] = value
    return effects
