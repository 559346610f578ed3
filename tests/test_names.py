"""A public name of a class or a type means one thing in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "broca"


def definitions(source):
    """Yields public classes and type aliases of a module, each with its definition.

    A class is defined by its place; an alias by its value, quotes of forward references left out,
    so that the same alias in two modules has one definition. Type variables are no aliases: they
    mean something within one signature.
    """
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield name, None
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                text = ast.unparse(value).replace("'", "")
                is_type = name[0].isupper() and not name.isupper()
                if is_type and not text.startswith("TypeVar("):
                    yield name, text


def test_a_name_has_one_meaning():
    """No class or alias has the name of another one."""
    meanings = defaultdict(set)
    for file in SOURCE.rglob("*.py"):
        for name, text in definitions(file.read_text(encoding="utf-8")):
            meanings[name].add(text or file)
    assert not {name for name, defined in meanings.items() if len(defined) > 1}
