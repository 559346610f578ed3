"""JSON schemas and tables of the keys of all files, made from the data classes.

`python docs/schemas.py` writes them into the documentation.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from broca.results.reading import KINDS
from broca.results.runs import RunFolderRecord

DOCS = Path(__file__).parent

FILES: dict[str, type] = {
    **{kind.kind.replace(" ", "-"): kind for kind in KINDS},
    "reproduce": RunFolderRecord,
}
"""Names of the schemas, and their data classes."""

START, END = "<!-- keys -->\n", "<!-- end of keys -->\n"
"""The lines between which docs/results.md has its tables."""


def schema_of(kind: type) -> dict[str, Any]:
    """Returns the JSON schema of a kind of file, which describes and requires every key."""
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    shapes = _shapes(kind)
    for name, definition in definitions.items():
        descriptions = _described(shapes[name])
        definition["description"] = descriptions.pop("")
        definition["properties"] = {
            part.name: {
                **definition["properties"][part.name],
                "description": descriptions[part.name],
            }
            for part in fields(shapes[name])
        }
        for part in definition["properties"].values():
            part.pop("default", None)
        definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": definitions,
    }


def text_of(kind: type) -> str:
    """Returns the schema as JSON."""
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def key_tables() -> str:
    """Returns the keys of all files as Markdown: a table for each kind, then for their parts."""
    parts: dict[str, type] = {}
    text = []
    for name, kind in FILES.items():
        file = getattr(kind, "FILE", "reproduce.json") or f"one for each {name.split('-')[-1]}"
        title = name.replace("-", " ").capitalize()
        heading = f"## {title}: `{file}` ([schema](schemas/{name}.json))"
        text.append(_table(heading, kind))
        parts |= {part: shape for part, shape in _shapes(kind).items() if shape is not kind}
    text.append("## Parts\n")
    files = set(FILES.values())
    text += [_table(f"### {name}", shape) for name, shape in parts.items() if shape not in files]
    return "\n".join(text)


def rewritten(page: str) -> str:
    """Returns `results.md` with its tables replaced by those of the data classes."""
    return page[: page.index(START) + len(START)] + key_tables() + page[page.index(END) :]


def _table(heading: str, shape: type) -> str:
    descriptions = _described(shape)
    lines = [heading, "", descriptions.pop(""), "", "| key | meaning |", "|---|---|"]
    lines += [f"| `{part.name}` | {descriptions[part.name]} |" for part in fields(shape)]
    return "\n".join(lines) + "\n"


def _shapes(kind: type) -> dict[str, type]:
    """Returns the data class and all data classes within it, by name."""
    shapes: dict[str, type] = {}
    waiting: list[Any] = [kind]
    while waiting:
        hint = waiting.pop(0)
        waiting += getattr(hint, "__args__", ())
        if isinstance(hint, type) and is_dataclass(hint) and hint.__name__ not in shapes:
            shapes[hint.__name__] = hint
            waiting += get_type_hints(hint).values()
    return shapes


def _described(shape: type) -> dict[str, str]:
    """Returns the description of a data class under the empty name, and of each of its fields."""
    descriptions: dict[str, str] = {}
    for parent in reversed(shape.__mro__):
        if parent.__doc__ and is_dataclass(parent):
            summary, _, attributes = cleandoc(parent.__doc__).partition("\n\nAttributes:\n")
            descriptions |= {"": " ".join(summary.split())}
            descriptions |= {
                name: " ".join(text.split())
                for name, text in re.findall(
                    r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE
                )
            }
    return descriptions


if __name__ == "__main__":
    for name, kind in FILES.items():
        (DOCS / "schemas" / f"{name}.json").write_text(text_of(kind), encoding="utf-8")
    results = DOCS / "results.md"
    results.write_text(rewritten(results.read_text(encoding="utf-8")), encoding="utf-8")
