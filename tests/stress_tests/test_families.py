"""Families of prompts, shipped and from YAML files."""

import pytest

from broca.errors import BadInput, UnknownName
from broca.stress_tests.families import SHIPPED, load_family


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_families_are_complete(name):
    """Every item answers every operation; the neutral word differs from the operations' words."""
    family = load_family(name)
    assert len(family.items) >= 48
    assert all(set(answers) == set(family.operations) for _, answers in family.items)
    assert family.neutral not in family.operations.values()
    operand, _ = family.items[0]
    assert operand in family.prompt(None, operand)
    assert family.neutral in family.prompt(None, operand)


def test_a_family_file_is_read(tmp_path):
    """A file supplies the family's templates, words, items and answers."""
    items = "\n".join(
        f"  - {{operand: 'n{n}', answers: {{up: 'u{n}', down: 'd{n}'}}}}" for n in range(16)
    )
    file = tmp_path / "mine.yaml"
    file.write_text(
        "family: mine\ntemplates: ['{operation} {operand}:', '{operand} {operation}:']\n"
        f"operations: {{up: raise, down: lower}}\nneutral: see\nitems:\n{items}\n"
    )
    family = load_family(file)
    assert family.prompt("down", "n3", template=1) == "n3 lower:"
    assert family.items[2] == ("n2", {"up": "u2", "down": "d2"})


def test_invalid_families_are_refused(tmp_path):
    """An unknown name, a file without items and a file with too few items are refused."""
    with pytest.raises(UnknownName, match="did you mean 'letters'"):
        load_family("leters")
    file = tmp_path / "mine.yaml"
    file.write_text("family: mine\ntemplates: ['{operation}']\noperations: {a: b}\n")
    with pytest.raises(BadInput, match="cannot be used"):
        load_family(file)
    file.write_text(
        "family: mine\ntemplates: ['{operation} {operand}']\noperations: {a: b}\nneutral: c\n"
        "items: [{operand: x, answers: {a: y}}]\n"
    )
    with pytest.raises(BadInput, match="1 items are too few"):
        load_family(file)


def test_a_family_tests_the_tasks_that_it_names():
    """`require_task` accepts the family's tasks; a family that names no tasks accepts none."""
    load_family("letters").require_task("sorting")
    with pytest.raises(BadInput, match="'addition', and family 'letters' asks for sorting and"):
        load_family("letters").require_task("addition")
    with pytest.raises(BadInput, match="family 'sums' names no `tasks`"):
        load_family("sums").require_task("addition")
