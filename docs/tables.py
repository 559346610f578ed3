"""Writes the tables of the docs from the records: `python docs/tables.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from broca.engine.ablation import ABLATIONS
from broca.models.gates import KINDS
from broca.neurons.methods import NEURON_METHODS
from broca.recovery import RECOVERIES
from broca.searches import DEFAULT_METHOD, METHODS

ROOT = Path(__file__).parent.parent
FILES = tuple(
    path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "architectures.md"
)
"""The pages with tables of records; the blocks of `architectures.md` are made elsewhere."""
_BLOCK = re.compile(r"<!-- (?P<name>[\w-]+) -->\n.*?<!-- /(?P=name) -->", re.DOTALL)


def tables() -> dict[str, str]:
    """Returns every block by the name of its markers, `<!-- name -->` and `<!-- /name -->`."""
    methods = [
        (f"`{name}`", method.measures + " (default)" * (name == DEFAULT_METHOD), method)
        for name, method in METHODS.items()
    ]
    return {
        "methods-and-answers": _table(
            ("method", "measures", "rows by default", "answers"),
            ((name, measures, method.rows, method.answers) for name, measures, method in methods),
        ),
        "sources": "\n".join(
            f"- `{name}`: {method.source}." for name, method in METHODS.items() if method.source
        ),
        "recoveries": _table(
            ("name", "regression"), ((f"`{name}`", _recovery(name)) for name in RECOVERIES)
        ),
        "components": _table(
            ("components", "example", "what a gate multiplies"),
            ((f"`{name}`", f"`{kind.example}`", kind.help) for name, kind in KINDS.items()),
        ),
        "ablations": _table(
            ("ablation", "what replaces the output", "routed experts"),
            (
                (f"`{name}`", kind.help, "no" if kind.needs_donors else "yes")
                for name, kind in ABLATIONS.items()
            ),
        ),
        "neuron-methods": _table(
            ("method", "score of a neuron"),
            ((f"`{name}`", method.help) for name, method in NEURON_METHODS.items()),
        ),
    }


def rewritten(text: str) -> str:
    """Returns a document with its blocks replaced by those of the records.

    Raises:
        KeyError: A marker names no block.
    """
    blocks = tables()
    return _BLOCK.sub(
        lambda match: "<!-- {0} -->\n{1}\n<!-- /{0} -->".format(
            match["name"], blocks[match["name"]]
        ),
        text,
    )


def _recovery(name: str) -> str:
    """Returns what a recovery does and the methods of which it is the default."""
    users = [f"`{method}`" for method in METHODS if METHODS[method].options.get("recovery") == name]
    return RECOVERIES[name].help + (f" (default of {', '.join(users)})" if users else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" --- ", "---")


if __name__ == "__main__":
    for file in FILES:
        file.write_text(rewritten(file.read_text()))
