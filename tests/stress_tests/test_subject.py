"""Families of prompts, pairs of a source and a target, and the subject drawn from them."""

import json
from types import SimpleNamespace

import pytest
from tiny import tiny_gated

from broca.errors import BadInput
from broca.stress_tests import subject


@pytest.mark.parametrize("name", subject.SHIPPED)
def test_shipped_families_are_complete(name):
    """There are as many items as pairs; the neutral word differs from the operations' words."""
    family = subject.load_family(name)
    assert len(family.items) >= 48
    assert family.neutral not in family.operations.values()


ITEMS = [{"operand": f"n{n}", "answers": {"up": f"u{n}", "down": f"d{n}"}} for n in range(16)]
FILE = {
    "family": "mine", "templates": ["{operation} {operand}:", "{operand} {operation}:"],
    "operations": {"up": "raise", "down": "lower"}, "neutral": "see", "items": ITEMS,
}  # fmt: skip


def test_a_family_file_is_read(tmp_path):
    """A file supplies the family's templates, words, items and answers."""
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(FILE))
    family = subject.load_family(file)
    assert family.prompt("down", "n3", template=1) == "n3 lower:"
    assert family.items[2] == subject.FamilyItem("n2", {"up": "u2", "down": "d2"})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"templates": ["{operation}"]}, "lacks {operation} or {operand}"),
        ({"operations": {"up": "raise", "turn": "turn"}}, "'n0' has no answer of turn"),
    ],
)
def test_invalid_families_are_refused(tmp_path, changed, message):
    """A file without a word, an operand or an answer, or with too few items, is refused."""
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(FILE | changed))
    with pytest.raises(BadInput, match=f"cannot be used.*{message}"):
        subject.load_family(file)


def test_a_family_tests_the_tasks_that_it_names():
    """`require_task` accepts the family's tasks; a family that names no tasks accepts none."""
    subject.load_family("letters").require_task("sorting")
    with pytest.raises(BadInput, match="'addition', and family 'letters' about sorting and"):
        subject.load_family("letters").require_task("addition")
    with pytest.raises(BadInput, match="family 'sums' about no task"):
        subject.load_family("sums").require_task("addition")


@pytest.fixture(scope="module")
def letters(planted):
    """The shipped family `letters` in the planted model's tokens."""
    return subject.tokenized(subject.load_family("letters"), planted.tokenizer, limit=40)


def test_questions_are_every_operand_with_every_operation(letters, planted):
    """Questions are ordered by operation; the right answer's first token precedes its foils."""
    lengths = {len(prompt) for operand in letters.operands for prompt in operand.prompts.values()}
    assert len(lengths) == 1
    assert len(letters.questions) == len(letters.prompts) == len(letters.answers) == 80
    assert [operation for _, operation in letters.questions[::40]] == ["reverse", "sort"]
    text = planted.tokenizer.decode(letters.prompts[0])
    assert text.startswith("reverse")
    for (operand, operation), answers in zip(letters.questions, letters.answers, strict=True):
        assert answers[0] == operand.answers[operation]
        assert answers[0] not in answers[1:]
    assert len({frozenset(answers) for answers in letters.answers}) == 1


def test_pairs_have_four_different_answers(letters):
    """A(v), B(v), A(u) and B(u) begin with different tokens; the seed decides the pairs.

    There are no more of them than operands, because intervals take them as independent.
    """
    pairs = subject.choose_pairs(letters, count=20, seed=0)
    assert len(set(pairs)) == 20
    assert len(subject.choose_pairs(letters, count=400, seed=0)) == len(letters.operands)
    for pair in pairs:
        assert len({*pair.target.answers.values(), *pair.source.answers.values()}) == 4
        assert pair.source_operation != pair.target_operation
    assert subject.choose_pairs(letters, count=20, seed=0) == pairs
    assert subject.choose_pairs(letters, count=20, seed=1) != pairs


def test_families_that_make_no_pairs_are_refused(planted):
    """Texts that end in a token, equal answers, words of different token lengths are refused."""

    def family(**operations):
        items = tuple(
            subject.FamilyItem(f"{n}", dict.fromkeys(operations, "same")) for n in range(10, 30)
        )
        return subject.Family("mine", ("{operation} {operand} =",), operations, "code", items)

    ends = SimpleNamespace(encode=lambda text: [*planted.tokenizer.encode(text), 5])
    with pytest.raises(BadInput, match="'mine': the tokens of 'a 10 = same' do not begin with"):
        subject.tokenized(family(a="a"), ends, limit=20)
    with pytest.raises(BadInput, match="only 0 operands of family 'mine'"):
        subject.tokenized(family(a="sort", b="sort sort sort"), planted.tokenizer, limit=20)
    equal = subject.tokenized(family(a="sort", b="reverse"), planted.tokenizer, limit=20)
    with pytest.raises(BadInput, match="there is no foil"):
        _ = equal.answers
    with pytest.raises(BadInput, match="gives 0 pairs with different answers"):
        subject.choose_pairs(equal, count=16, seed=0)


def test_subjects_without_heads_or_other_families_are_refused(planted):
    """A model whose components are not heads is refused, and a family as its own control."""
    with pytest.raises(BadInput, match="have one name"):
        subject.StressSubject(
            planted, ("L0H1",), [subject.load_family("letters")] * 2, pairs=16, sets=3, seed=0
        )
    model = tiny_gated(components="mlp")
    with pytest.raises(BadInput, match="not of mlp"):
        subject.StressSubject(
            model, ("L0M",), (subject.load_family("letters"),), pairs=16, sets=3, seed=0
        )
