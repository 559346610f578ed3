"""Tokenized prompts of a family, and pairs of a source and a target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.stress_tests.families import Family

Prompt = tuple[int, ...]
"""Tokens of a prompt."""

_FEWEST_OPERANDS = 16
_FEWEST_PAIRS = 8
_DRAWS_PER_PAIR = 200


@dataclass(frozen=True)
class Operand:
    """An operand with its prompts' tokens and its answers' first tokens.

    Attributes:
        prompts: Tokens of the prompt of each operation, and with the neutral word for None.
        answers: First token of the answer of each operation.
        template: Index of the template.
    """

    prompts: dict[str | None, Prompt]
    answers: dict[str, int]
    template: int


@dataclass(frozen=True)
class PromptPair:
    """A source with operation A on operand u and a target with operation B on operand v.

    Attributes:
        source: Index of u in the family.
        target: Index of v in the family.
        source_operation: Operation A.
        target_operation: Operation B.
    """

    source: int
    target: int
    source_operation: str
    target_operation: str


@dataclass(frozen=True)
class TokenizedFamily:
    """A family's prompts in a model's tokens, all of the same length.

    Attributes:
        name: Name of the family.
        operations: Its operations.
        operands: Its operands.
    """

    name: str
    operations: tuple[str, ...]
    operands: tuple[Operand, ...]

    @property
    def questions(self) -> tuple[tuple[Operand, str], ...]:
        """All operands with all operations, operation by operation."""
        return tuple(
            (operand, operation) for operation in self.operations for operand in self.operands
        )

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Returns the prompt of every question."""
        return tuple(operand.prompts[operation] for operand, operation in self.questions)

    @property
    def answers(self) -> tuple[tuple[int, ...], ...]:
        """Returns the right first token of every question, then its foils.

        Foils are the first tokens of all other answers of the family.

        Raises:
            BadInput: There are no foils.
        """
        tokens = sorted({token for operand in self.operands for token in operand.answers.values()})
        if len(tokens) < 2:
            raise BadInput("all answers of a family begin with the same token: there is no foil")
        return tuple(
            (right, *(token for token in tokens if token != right))
            for right in (operand.answers[operation] for operand, operation in self.questions)
        )


def tokenized(family: Family, tokenizer: Any, *, limit: int) -> TokenizedFamily:
    """Tokenizes a family; operands whose prompts lack the most common length are left out.

    Args:
        family: The prompts as text.
        tokenizer: The model's tokenizer.
        limit: Maximum number of operands.

    Raises:
        BadInput: Too few operands remain, because the operations' words differ in length.
    """
    operands = []
    for number, (text, answers) in enumerate(family.items):
        template = number % len(family.templates)
        prompts = {
            operation: tuple(tokenizer.encode(family.prompt(operation, text, template=template)))
            for operation in (*family.operations, None)
        }
        first_tokens = {}
        for operation, answer in answers.items():
            prompt = family.prompt(operation, text, template=template)
            with_answer = tokenizer.encode(f"{prompt} {answer}")
            first_tokens[operation] = with_answer[len(prompts[operation])]
        operands.append(Operand(prompts, first_tokens, template))
    lengths = Counter(len(prompt) for operand in operands for prompt in operand.prompts.values())
    usual = lengths.most_common(1)[0][0]
    fitting = [
        operand
        for operand in operands
        if {len(prompt) for prompt in operand.prompts.values()} == {usual}
    ]
    if len(fitting) < _FEWEST_OPERANDS:
        raise BadInput(
            f"only {len(fitting)} operands of family '{family.name}' give prompts of one length in "
            "this model's tokens: choose words of equally many tokens for its operations and the "
            "neutral prompt"
        )
    return TokenizedFamily(family.name, tuple(family.operations), tuple(fitting[:limit]))


def choose_pairs(family: TokenizedFamily, *, count: int, seed: int) -> list[PromptPair]:
    """Draws pairs in which A(v), B(v), A(u) and B(u) begin with different tokens.

    Raises:
        BadInput: The family has only one operation, or no such pairs.
    """
    names, operands = family.operations, family.operands
    if len(names) < 2:
        raise BadInput(
            f"family '{family.name}' has one operation: transfer needs two on the same operands"
        )
    rng = np.random.default_rng(seed)
    chosen: dict[PromptPair, None] = {}
    for _ in range(_DRAWS_PER_PAIR * count):
        if len(chosen) == count:
            break
        source, target = (int(place) for place in rng.choice(len(operands), 2, replace=False))
        a, b = (names[int(place)] for place in rng.choice(len(names), 2, replace=False))
        u, v = operands[source], operands[target]
        tokens = {v.answers[a], v.answers[b], u.answers[a], u.answers[b]}
        if len(tokens) == 4 and u.template == v.template:
            chosen[PromptPair(source, target, a, b)] = None
    if len(chosen) < _FEWEST_PAIRS:
        raise BadInput(
            f"family '{family.name}' gives {len(chosen)} pairs with different answers: add operands"
        )
    return list(chosen)
