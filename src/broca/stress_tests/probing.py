"""Decodability: tests whether a linear probe reads the operation from the heads' outputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca.results.stress_test import Probe

_FOLDS = 4


def probe(
    outputs: NDArray[np.float64],
    operand_tokens: NDArray[np.int_],
    labels: NDArray[np.int_],
    groups: NDArray[np.int_],
    templates: NDArray[np.int_],
    *,
    seed: int = 0,
) -> Probe:
    """Returns cross-validated accuracies of logistic regressions.

    Args:
        outputs: Heads' outputs at the last token, `(prompts, features)`.
        operand_tokens: Tokens of the operands, `(prompts, tokens)`: surface features.
        labels: Operation of each prompt.
        groups: Operand of each prompt; no operand is in both training and test data.
        templates: Template of each prompt.
        seed: Seed of the shuffled labels.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    shuffled = np.random.default_rng(seed).permutation(labels)
    surface = OneHotEncoder(handle_unknown="ignore").fit_transform(operand_tokens)

    def accuracy(features: object, goal: NDArray[np.int_], **split: object) -> float:
        regression = LogisticRegression(C=0.1, max_iter=500)
        model = make_pipeline(StandardScaler(with_mean=False), regression)
        return float(cross_val_score(model, features, goal, **split).mean())

    by_operand = {"groups": groups, "cv": GroupKFold(n_splits=_FOLDS)}
    by_template = {"groups": templates, "cv": LeaveOneGroupOut()}
    several = len(set(templates.tolist())) > 1
    return Probe(
        accuracy=accuracy(outputs, labels, **by_operand),
        templates=accuracy(outputs, labels, **by_template) if several else None,
        shuffled=accuracy(outputs, shuffled, **by_operand),
        surface=accuracy(surface, labels, **by_operand),
        chance=float(np.bincount(labels).max() / len(labels)),
        items=len(labels),
    )
