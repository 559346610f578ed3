"""A binding is named for what it holds, not with a filler word."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent

FILLERS = {
    "one", "own", "each", "found", "asked", "rest", "beside", "told", "said", "some", "there",
    "here", "alike", "way", "made", "few", "many", "both", "theirs", "ours", "taken", "seen",
    "wanted", "given", "kept", "whole",
}  # fmt: skip
"""Words that say nothing of what a variable, a parameter or a function holds or does."""

PUBLISHED = {"src/broca/searches/fresh.py": {"both"}}
"""Options of methods that command lines have had since their first version."""

FILES = sorted(
    file.relative_to(ROOT)
    for folder in ("src", "tests", "benchmarks", "docs", "scripts", "training")
    for file in (ROOT / folder).rglob("*.py")
)


def bindings(source):
    """Yields the names that a module binds: variables, parameters, attributes, functions, ..."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)):
                yield name


def fillers(source):
    """Returns the fillers that a module has as names."""
    return {name for name in bindings(source) if name.strip("_") in FILLERS}


def test_no_binding_has_a_filler_as_its_name():
    """No variable, parameter, attribute, function or class is named with a filler."""
    assert len(FILES) > 700
    names = {str(file): fillers((ROOT / file).read_text()) for file in FILES}
    assert {file: words for file, words in names.items() if words} == PUBLISHED


def test_every_way_to_bind_a_name_is_found():
    """Variables, comprehensions, parameters, functions, classes, aliases and attributes count."""
    source = """
import os as one
def found(own, *rest, each=1):
    self.beside = [told for told in own]
class said: pass
with open("f") as made:
    match made:
        case [kept]: heads = 1
"""
    assert fillers(source) == {
        "one", "found", "own", "rest", "each", "beside", "told", "said", "made", "kept",
    }  # fmt: skip
