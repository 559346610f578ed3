"""Prompts in tokens, and pairs of a source and a target."""

import pytest

from broca.errors import BadInput
from broca.stress_tests.families import Family, load_family
from broca.stress_tests.prompts import choose_pairs, tokenized


@pytest.fixture(scope="module")
def letters(planted):
    """The shipped family `letters` in the planted model's tokens."""
    return tokenized(load_family("letters"), planted.tokenizer, limit=40)


def test_prompts_are_of_one_length(letters):
    """Prompts of all operations and of the neutral word have the same length."""
    lengths = {len(prompt) for operand in letters.operands for prompt in operand.prompts.values()}
    assert len(lengths) == 1
    assert len(letters.operands) == 40


def test_questions_are_every_operand_with_every_operation(letters, planted):
    """Questions are ordered by operation; the right answer's first token precedes its foils."""
    assert len(letters.questions) == len(letters.prompts) == len(letters.answers) == 80
    assert [operation for _, operation in letters.questions[::40]] == ["reverse", "sort"]
    text = planted.tokenizer.decode(letters.prompts[0])
    assert text.startswith("reverse")
    for (operand, operation), answers in zip(letters.questions, letters.answers, strict=True):
        assert answers[0] == operand.answers[operation]
        assert answers[0] not in answers[1:]
    assert len({frozenset(answers) for answers in letters.answers}) == 1


def test_pairs_have_four_different_answers(letters):
    """A(v), B(v), A(u) and B(u) begin with different tokens; the seed decides the pairs."""
    pairs = choose_pairs(letters, count=20, seed=0)
    assert len(set(pairs)) == 20
    for pair in pairs:
        u, v = letters.operands[pair.source], letters.operands[pair.target]
        assert len({*v.answers.values(), *u.answers.values()}) == 4
        assert pair.source_operation != pair.target_operation
    assert choose_pairs(letters, count=20, seed=0) == pairs
    assert choose_pairs(letters, count=20, seed=1) != pairs


def test_one_operation_gives_no_pairs(planted):
    """A family of one operation is refused, because transfer needs two."""
    sums = tokenized(load_family("sums"), planted.tokenizer, limit=20)
    with pytest.raises(BadInput, match="one operation"):
        choose_pairs(sums, count=8, seed=0)


def family(operations, answer=lambda number: f"{number} x", count=20):
    """Returns a family of numbers whose operations have the given words."""
    items = tuple(
        (f"{number}", {name: answer(number) for name in operations})
        for number in range(10, 10 + count)
    )
    return Family("mine", ("{operation} {operand} =",), operations, "code", items)


def test_words_of_different_length_are_refused(planted):
    """Operation words of different token lengths leave no operand, and the family is refused."""
    words = family({"a": "sort", "b": "sort sort sort"})
    with pytest.raises(BadInput, match="only 0 operands of family 'mine'"):
        tokenized(words, planted.tokenizer, limit=20)


def test_equal_answers_are_refused(planted):
    """A family whose answers are all equal has no foils and no pairs."""
    equal = tokenized(
        family({"a": "sort", "b": "reverse"}, answer=lambda number: "same"),
        planted.tokenizer,
        limit=20,
    )
    with pytest.raises(BadInput, match="there is no foil"):
        _ = equal.answers
    with pytest.raises(BadInput, match="gives 0 pairs with different answers"):
        choose_pairs(equal, count=16, seed=0)
