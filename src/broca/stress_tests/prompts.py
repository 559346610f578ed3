"""Tokenized prompts of a family, and pairs of a source and a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.stress_tests.families import Family


@dataclass(frozen=True)
class Operand:
    """An operand with its prompts' tokens and its answers' first tokens.

    Attributes:
        prompts: For each operation, and for None with the neutral word, tokens of the prompt.
        answers: For each operation the first token of its answer.
        template: Number of the template.
    """

    prompts: dict[str | None, tuple[int, ...]]
    answers: dict[str, int]
    template: int


@dataclass(frozen=True)
class Pair:
    """A source that asks for A of u and a target that asks for B of v: indices of operands.

    Attributes:
        source: Operand u.
        target: Operand v.
        asked: Operation A.
        own: Operation B.
    """

    source: int
    target: int
    asked: str
    own: str


def operands(family: Family, tokenizer: Any, *, limit: int) -> list[Operand]:
    """Tokenizes the operands; those whose prompts are not of the most common length are left out.

    Raises:
        BadInput: Too few are left, because the operations' words differ in their tokens.
    """
    found = []
    for number, (operand, answers) in enumerate(family.items):
        template = number % len(family.templates)
        prompts = {
            operation: tuple(tokenizer.encode(family.prompt(operation, operand, template=template)))
            for operation in (*family.operations, None)
        }
        first = {}
        for operation, answer in answers.items():
            text = family.prompt(operation, operand, template=template)
            whole = tokenizer.encode(f"{text} {answer}")
            first[operation] = whole[len(prompts[operation])]
        found.append(Operand(prompts, first, template))
    lengths = Counter(len(prompt) for one in found for prompt in one.prompts.values())
    usual = lengths.most_common(1)[0][0]
    kept = [one for one in found if {len(prompt) for prompt in one.prompts.values()} == {usual}]
    if len(kept) < 16:
        raise BadInput(
            f"only {len(kept)} operands of family '{family.name}' give prompts of one length in "
            "this model's tokens: choose words of equally many tokens for its operations and the "
            "neutral prompt"
        )
    return kept[:limit]


def pairs(family: Family, found: Sequence[Operand], *, count: int, seed: int) -> list[Pair]:
    """Pairs in which A(v), B(v), A(u) and B(u) begin with different tokens.

    Raises:
        BadInput: The family has a single operation, or no such pairs.
    """
    names = list(family.operations)
    if len(names) < 2:
        raise BadInput(
            f"family '{family.name}' has one operation: transfer needs two on the same operands"
        )
    rng = np.random.default_rng(seed)
    chosen: dict[Pair, None] = {}
    for _ in range(200 * count):
        if len(chosen) == count:
            break
        source, target = (int(one) for one in rng.choice(len(found), 2, replace=False))
        asked, own = (names[int(one)] for one in rng.choice(len(names), 2, replace=False))
        u, v = found[source], found[target]
        tokens = (v.answers[asked], v.answers[own], u.answers[asked], u.answers[own])
        if len(set(tokens)) == 4 and u.template == v.template:
            chosen[Pair(source, target, asked, own)] = None
    if len(chosen) < 8:
        raise BadInput(
            f"family '{family.name}' gives {len(chosen)} pairs with different answers: add operands"
        )
    return list(chosen)
