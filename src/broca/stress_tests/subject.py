"""The subject of a stress test: heads, random sets, and pairs of tokenized prompts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.models import GatedModel
from broca.stress_tests.families import Family
from broca.stress_tests.patcher import Prompt
from broca.verification.statistics import layer_matched

HeadColumns = tuple[int, ...]

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
        if any(component.kind != "head" for component in model.components):
            raise BadInput(
                f"a stress test writes outputs of heads, not of {model.kinds}: load the model with "
                "`components` heads"
            )
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
