"""Options that verbs take together, written once: as the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def takes_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Lets a verb take dataclasses of options.

    Typer sees the fields of each, in the parameter's place, as options of the verb; the verb gets
    the dataclass.

    Args:
        verb: A function for Typer. What is annotated with a dataclass is a group; each of its
            fields is annotated as an option and has a default.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    shown: list[Parameter] = []
    for name, parameter in signature(verb).parameters.items():
        if name in groups:
            shown += _options_of(groups[name])
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(verb)
    def ungrouped(**given: Any) -> None:
        filled = {
            name: group(**{one.name: given.pop(one.name) for one in fields(group)})
            for name, group in groups.items()
        }
        verb(**given, **filled)

    ungrouped.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    ungrouped.__annotations__ = {one.name: one.annotation for one in shown}
    return ungrouped


def _options_of(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(group)
    ]
