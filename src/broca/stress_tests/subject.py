"""The subject of a stress test: heads, random sets, and pairs of prompts of a family."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import yaml

from broca.errors import BadInput, UnknownName, first_line, require_known
from broca.known_paths import place_of
from broca.models import GatedModel
from broca.stress_tests.patcher import HeadColumns, Prompt, Prompts
from broca.verification.statistics import layer_matched

SHIPPED = ("letters", "sums")
"""The families of the package, for the shipped models."""

_FEWEST_OPERANDS = 16
_FEWEST_PAIRS = 8
_DRAWS_PER_PAIR = 200


class FamilyItem(msgspec.Struct, frozen=True):
    """An operand with the answer of every operation."""

    operand: str
    answers: dict[str, str]


class Family(msgspec.Struct, frozen=True):
    """Prompts that differ only in their operation.

    Attributes:
        name: Name of the family.
        templates: Texts with `{operation}` and `{operand}`.
        operations: Word of each operation.
        neutral: A word of the same length in tokens for no operation.
        items: Operands, each with the answer of every operation.
        tasks: Tasks of the family; a run's heads are tested on a family of its own task.
    """

    name: str = msgspec.field(name="family")
    templates: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    operations: Annotated[dict[str, str], msgspec.Meta(min_length=1)]
    neutral: str
    items: Annotated[tuple[FamilyItem, ...], msgspec.Meta(min_length=_FEWEST_OPERANDS)]
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for template in self.templates:
            if "{operation}" not in template or "{operand}" not in template:
                raise ValueError(f"template '{template}' lacks {{operation}} or {{operand}}")
        for item in self.items:
            if missing := self.operations.keys() - item.answers:
                raise ValueError(f"'{item.operand}' has no answer of {min(missing)}")

    def require_task(self, task: str) -> None:
        """Refuses a run whose task is not in `tasks`.

        Raises:
            BadInput: The task is not in `tasks`.
        """
        if task not in self.tasks:
            about = " and ".join(self.tasks) or "no task"
            raise BadInput(
                f"the run is about task '{task}', and family '{self.name}' about {about}: give a "
                f"`family` file whose `tasks` names '{task}' (docs/stress.md), or name the `heads`"
            )

    def prompt(self, operation: str | None, operand: str, *, template: int = 0) -> str:
        """Returns the prompt of an operation on an operand; with the neutral word for None."""
        word = self.neutral if operation is None else self.operations[operation]
        return self.templates[template].replace("{operation}", word).replace("{operand}", operand)


def load_family(name: str | Path) -> Family:
    """Loads a shipped family by name, or another from a YAML file.

    Raises:
        UnknownName: The name is neither a shipped family nor a file.
        BadInput: The file does not describe a family.
    """
    path = files("broca.stress_tests") / "families" / f"{name}.yaml"
    if str(name) not in SHIPPED:
        path = place_of(name)
        if not path.is_file():
            known = (*SHIPPED, "a YAML file (docs/stress.md)")
            require_known("family", str(name), known, error=UnknownName)
    try:
        texts = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        return msgspec.convert(texts, Family)
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise BadInput(
            f"family '{name}' cannot be used ({first_line(error)}): it needs family, templates, "
            "operations, neutral and items (docs/stress.md)"
        ) from error


def families_of(task: str) -> tuple[str, ...]:
    """Returns the names of the shipped families on which a run about a task can be tested."""
    return tuple(name for name in SHIPPED if task in load_family(name).tasks)


@dataclass(frozen=True, eq=False)
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
    """A source, operation A on operand u, and a target, operation B on operand v.

    Attributes:
        source: Operand u.
        target: Operand v.
        source_operation: Operation A.
        target_operation: Operation B.
    """

    source: Operand
    target: Operand
    source_operation: str
    target_operation: str

    @property
    def tokens(self) -> tuple[int, int, int]:
        """The first tokens of A(v), B(v) and A(u)."""
        u, v, a, b = self.source, self.target, self.source_operation, self.target_operation
        return v.answers[a], v.answers[b], u.answers[a]


@dataclass(frozen=True)
class TokenizedFamily:
    """A family's prompts in a model's tokens, all of the same length."""

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
    def prompts(self) -> Prompts:
        """The prompt of every question."""
        return tuple(operand.prompts[operation] for operand, operation in self.questions)

    @property
    def answers(self) -> tuple[tuple[int, ...], ...]:
        """The right first token of every question, then its foils.

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
        BadInput: Too few operands remain, because the operations' words differ in length, or an
            answer's first token does not follow the prompt's.
    """
    operands = []
    for number, item in enumerate(family.items):
        template = number % len(family.templates)
        texts = {
            operation: family.prompt(operation, item.operand, template=template)
            for operation in (*family.operations, None)
        }
        prompts = {
            operation: tuple(tokenizer.encode(prompt)) for operation, prompt in texts.items()
        }
        first_tokens = {}
        for operation in family.operations:
            prompt, text = prompts[operation], f"{texts[operation]} {item.answers[operation]}"
            tokens = tuple(tokenizer.encode(text))
            if tokens[:-1][: len(prompt)] != prompt:
                raise BadInput(
                    f"family '{family.name}': the tokens of '{text}' do not begin with those of "
                    "its prompt; an answer is empty, or the tokenizer ends every text with a token"
                )
            first_tokens[operation] = tokens[len(prompt)]
        operands.append(Operand(prompts, first_tokens, template))
    lengths = [{len(prompt) for prompt in operand.prompts.values()} for operand in operands]
    usual, _ = Counter(chain.from_iterable(lengths)).most_common(1)[0]
    fitting = [operand for operand, own in zip(operands, lengths, strict=True) if own == {usual}]
    if len(fitting) < _FEWEST_OPERANDS:
        raise BadInput(
            f"only {len(fitting)} operands of family '{family.name}' give prompts of one length in "
            "this model's tokens: choose words of equally many tokens for its operations and the "
            "neutral prompt"
        )
    return TokenizedFamily(family.name, tuple(family.operations), tuple(fitting[:limit]))


def choose_pairs(family: TokenizedFamily, *, count: int, seed: int) -> tuple[PromptPair, ...]:
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
    count = min(count, len(operands))  # intervals take pairs, which share operands, as independent
    chosen: dict[PromptPair, None] = {}
    for _ in range(_DRAWS_PER_PAIR * count):
        if len(chosen) == count:
            break
        u, v = (operands[place] for place in rng.choice(len(operands), 2, replace=False))
        a, b = (names[place] for place in rng.choice(len(names), 2, replace=False))
        tokens = {v.answers[a], v.answers[b], u.answers[a], u.answers[b]}
        if len(tokens) == 4 and u.template == v.template:
            chosen[PromptPair(u, v, a, b)] = None
    if len(chosen) < _FEWEST_PAIRS:
        raise BadInput(
            f"family '{family.name}' gives {len(chosen)} pairs with different answers: add operands"
        )
    return tuple(chosen)


class StressSubject:
    """The subject of a stress test.

    Args:
        model: The model, with heads as components.
        names: Names of the tested heads.
        families: The tested family, then the controls, for which the heads should not matter.
        pairs: Maximum number of operands of each family, and of pairs.
        sets: Number of random sets from the same layers.
        seed: Seed of all random draws.

    Raises:
        BadInput: A family does not fit the model, or its components are not heads.
    """

    def __init__(
        self,
        model: GatedModel,
        names: tuple[str, ...],
        families: Sequence[Family],
        *,
        pairs: int,
        sets: int,
        seed: int,
    ) -> None:
        if any(component.kind != "head" for component in model.components):
            raise BadInput(
                f"a stress test writes outputs of heads, not of {model.kinds}: load the model with "
                "`components` heads"
            )
        self.names, self.seed = names, seed
        self.columns: HeadColumns = tuple(model.components.columns(names))
        self.all_heads: HeadColumns = tuple(range(len(model.components)))
        layers = {model.components[column].layer for column in self.columns}
        widths = {p.head_dim for p in model.structure.projections if p.layer in layers}
        if len(widths) > 1:
            raise BadInput(f"the heads have widths of their own, {widths}: test those of one width")
        (self.head_dim,) = widths
        random_sets = layer_matched(model.components, self.columns, count=sets, seed=seed)
        self.random_sets: tuple[HeadColumns, ...] = tuple(map(tuple, random_sets.tolist()))
        self.family, *self.controls = (
            tokenized(texts, model.tokenizer, limit=pairs) for texts in families
        )
        self.pairs = choose_pairs(self.family, count=pairs, seed=seed)
        if len({family.name for family in families}) < len(families):
            raise BadInput("two of the families have one name: give other ones as `control`")
        self.settings = {
            "verb": "stress", "heads": list(names),
            "families": [family.name for family in families],
            "prompts": hashlib.blake2b(repr(families).encode(), digest_size=16).hexdigest(),
            "pairs": pairs, "sets": sets, "seed": seed,
        }  # fmt: skip
