"""The subject of a stress test: heads, random sets, prompts and pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broca.models import GatedModel
from broca.stress_tests.families import Family
from broca.stress_tests.patching import require_heads
from broca.stress_tests.prompts import PromptPair, TokenizedFamily, choose_pairs, tokenized
from broca.verification.controls import layer_matched

HeadColumns = tuple[int, ...]


@dataclass(frozen=True)
class StressSubject:
    """The subject of a stress test.

    Attributes:
        head_dim: Width of a head's output.
        names: Names of the tested heads.
        columns: Columns of the tested heads.
        random_sets: Columns of random sets from the same layers.
        all_heads: Columns of all heads of the model.
        family: The family for which the heads are claimed.
        controls: Families for which they should not matter.
        pairs: Sources and targets in the family.
        seed: Seed of all random draws.
        settings: The settings of the test, for the journal.
    """

    head_dim: int
    names: tuple[str, ...]
    columns: HeadColumns
    random_sets: tuple[HeadColumns, ...]
    all_heads: HeadColumns
    family: TokenizedFamily
    controls: tuple[TokenizedFamily, ...]
    pairs: tuple[PromptPair, ...]
    seed: int
    settings: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: GatedModel,
        names: tuple[str, ...],
        families: Sequence[Family],
        *,
        pairs: int,
        sets: int,
        seed: int,
    ) -> StressSubject:
        """Draws sets and pairs and tokenizes the prompts.

        Args:
            model: The model, with heads as components.
            names: Names of the tested heads.
            families: The tested family, then the controls.
            pairs: Number of pairs, and maximum number of operands of each family.
            sets: Number of random sets.
            seed: Seed of all random draws.

        Raises:
            BadInput: A family does not fit the model, or its components are not heads.
        """
        require_heads(model)
        columns = tuple(model.components.columns(names))
        random_sets = layer_matched(model.components, columns, count=sets, seed=seed)
        family, *controls = [tokenized(texts, model.tokenizer, limit=pairs) for texts in families]
        return cls(
            names=names,
            columns=columns,
            random_sets=tuple(tuple(random_set) for random_set in random_sets.tolist()),
            all_heads=tuple(range(len(model.components))),
            head_dim=model.structure.projections[0].head_dim,
            family=family,
            controls=tuple(controls),
            pairs=tuple(choose_pairs(family, count=pairs, seed=seed)),
            seed=seed,
            settings={
                "verb": "stress",
                "heads": list(names),
                "families": [member.name for member in families],
                "prompts": hashlib.blake2b(repr(families).encode(), digest_size=16).hexdigest(),
                "pairs": pairs,
                "sets": sets,
                "seed": seed,
            },
        )
