"""The sentences of fields and parameters, which are their help in Python and in a shell."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.options.keywords import Group

_DEFINED = {
    "components": ("models/choosing.py", r'\bComponentKind\(\s*name="(.+?)"'),
    "ablations": ("engine/ablation.py", r'\bAblationKind\(\s*name="(.+?)"'),
    "executors": ("executors/*.py", r'\bExecutorKind\(\s*name="(.+?)"'),
    "trackers": ("integrations/tracking.py", r'\bTrackerKind\(\s*name="(.+?)"'),
    "default_method": ("options/running.py", r'\bDEFAULT_METHOD = "(.+?)"'),
}
"""What placeholders such as `{ablations}` stand for: files, and the pattern that defines a name."""


def field_help(cls: type[Any]) -> dict[str, str]:
    """Returns the sentences under the fields of an option class, in their order."""
    sentences = _sentences(cls.__module__).get(cls.__name__, {})
    return {name: filled(sentence) for name, sentence in sentences.items()}


def filled(text: str) -> str:
    """Replaces placeholders by the names of records, such as `{ablations}`."""
    return re.sub(rf"{{({'|'.join(_DEFINED)})}}", lambda match: ", ".join(_names(match[1])), text)


@cache
def _names(menu: str) -> list[str]:
    """Returns the names that a placeholder stands for, those of other packages too.

    The source is searched, because importing it would load torch.
    """
    from importlib.metadata import entry_points

    files, pattern = _DEFINED[menu]
    sources = (path.read_text("utf-8") for path in sorted(Path(__file__).parent.parent.glob(files)))
    names = [name for source in sources for name in re.findall(pattern, source)]
    return [*names, *sorted(entry.name for entry in entry_points(group=f"broca.{menu}"))]


@cache
def _sentences(module: str) -> dict[str, dict[str, str]]:
    source = inspect.getsource(sys.modules[module])
    by_class: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        sentences = by_class[node.name] = {}
        for item, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(item.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                sentences[item.target.id] = " ".join(str(text.value.value).split())
    return by_class


_ARGS = re.compile(r"^Args:\n((?:(?:    .*)?\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): ((?:.*\n?)(?:^        .*\n?)*)", re.MULTILINE)
_NEXT_SECTION = re.compile(r"^(?:Returns|Yields|Raises|Examples?|Notes?|Source):$", re.MULTILINE)


def parameter_help(docstring: str) -> dict[str, str]:
    """Returns the sentences of the `Args` section of a docstring, by parameter."""
    section = _ARGS.search(inspect.cleandoc(docstring) + "\n")
    if section is None:
        return {}
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(section[1])}


def completed(docstring: str, groups: Iterable[Group]) -> str:
    """Returns the docstring with all fields in its `Args` section."""
    text = filled(inspect.cleandoc(docstring)) + "\n"
    explained = parameter_help(text)
    lines = []
    for group in groups:
        sentences = field_help(group.cls)
        for item in group.fields:
            if item.name not in explained and item.name in sentences:
                entry = f"{item.name}: {sentences[item.name]}"
                lines += textwrap.wrap(
                    entry, 96, initial_indent="    ", subsequent_indent="        "
                )
        if group.parameter not in explained:
            lines.append(f"    {group.parameter}: The fields of {group.cls.__name__} as a whole.")
    if not lines:
        return text
    added = "\n".join(lines)
    section = _ARGS.search(text)
    if section is not None:
        head, tail = text[: section.start()], text[section.end() :]
        return f"{head}Args:\n{section[1].rstrip()}\n{added}\n\n{tail}".rstrip() + "\n"
    following = _NEXT_SECTION.search(text)
    place = len(text) if following is None else following.start()
    return f"{text[:place].rstrip()}\n\nArgs:\n{added}\n\n{text[place:]}".rstrip() + "\n"
