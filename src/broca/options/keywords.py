"""Option classes as keywords of a verb: as a whole, or field by field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from broca.errors import BadInput, nearest
from broca.options.sentences import completed


def parts_of(options: Any) -> list[Any]:
    """Returns the option classes within an option class, or the class itself if it has none."""
    names = [part.name for part in fields(options) if part.name.endswith("_options")]
    return [getattr(options, name) for name in names] or [options]


@dataclass(frozen=True)
class _Without:
    names: tuple[str, ...]


def without(*names: str) -> _Without:
    """Excludes fields of an option class, or whole classes of it, from the keywords of a verb.

    Use it in an annotation, such as `Annotated[TaskOptions, without("limit")]`. Callers of the verb
    can set these fields only in an instance of the class.
    """
    return _Without(names)


@dataclass(frozen=True)
class Group:
    """An option class that a verb takes.

    Attributes:
        parameter: Its keyword.
        cls: The option class.
        fields: Its fields that are keywords of the verb.
        container: The verb's parameter that contains it; it may be the group itself.
    """

    parameter: str
    cls: type[Any]
    fields: tuple[Field[Any], ...]
    container: str


R = TypeVar("R")


def takes_options(verb: Callable[..., R]) -> Callable[..., R]:
    """Lets the callers of a verb give option classes as a whole, or their fields as keywords.

    A parameter `..._options` that is annotated with an option class is a group, or several where
    the class consists of others. Keywords replace the fields of a group that is given as a whole.
    The signature shows every field, and the sentences of all fields that the docstring does not
    explain are added to its `Args` section.

    Args:
        verb: A function; it receives an instance of each of its groups.

    Raises:
        ValueError: A name is a parameter and a field, or a field of two groups.
    """
    parameters = inspect.signature(verb).parameters
    wholes, groups = _option_classes(verb), groups_of(verb)
    names = [name for name in parameters if name not in wholes]
    names += [item.name for group in groups.values() for item in group.fields]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"`{twice}` of {verb.__name__} comes twice: exclude it from a group with `without`"
        )

    @wraps(verb)
    def with_groups(*args: Any, **arguments: Any) -> R:
        arguments = {
            name: _number(name, value, str(parameters[name].annotation))
            if name in parameters
            else value
            for name, value in arguments.items()
        }
        unknown = [name for name in arguments if name not in {*names, *groups, *wholes}]
        if unknown:
            raise BadInput(
                f"`{verb.__name__}` has no parameter '{unknown[0]}'{nearest(unknown[0], names)}"
            )
        options = {
            name: _instance(name, cls, arguments.pop(name, None))
            for name, (cls, _) in wholes.items()
        }
        for name, group in groups.items():
            part = getattr(options[group.container], name, options[group.container])
            part = _instance(name, group.cls, arguments.pop(name, None), part)
            values = {
                item.name: arguments.pop(item.name)
                for item in group.fields
                if item.name in arguments
            }
            given = {item.name: getattr(part, item.name) for item in fields(group.cls)} | values
            part = replace(
                part,
                **{
                    item.name: _number(item.name, given[item.name], str(item.type))
                    for item in fields(group.cls)
                },
            )
            if group.container != name:
                part = replace(options[group.container], **{name: part})
            options[group.container] = part
        return verb(*args, **arguments, **options)

    shown = [parameter for name, parameter in parameters.items() if name not in wholes]
    for group in groups.values():
        shown += [_as_parameter(item) for item in group.fields]
    classes = {name: group.cls for name, group in groups.items()}
    for name, cls in (classes | {name: cls for name, (cls, _) in wholes.items()}).items():
        annotation = f"{cls.__name__} | None"
        shown.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    shown.sort(key=lambda parameter: parameter.kind)
    with_groups.__signature__ = Signature(  # type: ignore[attr-defined]
        shown, return_annotation=inspect.signature(verb).return_annotation
    )
    with_groups.__doc__ = completed(verb.__doc__ or "", groups.values())
    return with_groups


def _number(name: str, value: Any, annotation: str) -> Any:
    """Returns a number of NumPy or torch as one of Python, which JSON takes.

    Args:
        name: Name of the parameter.
        value: Its value.
        annotation: Its type; only `int`, `float` and `bool`, or None, are looked at.

    Raises:
        BadInput: The value is no number of this type.
    """
    kinds = {kind.strip() for kind in annotation.split("|")}
    if value is None or kinds - {"None"} not in ({"int"}, {"float"}, {"bool"}):
        return value
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    accepted = (int,) if "int" in kinds else (bool,) if "bool" in kinds else (int, float)
    if not isinstance(plain, accepted):
        noun = {"int": "a whole number", "float": "a number", "bool": "True or False"}
        raise BadInput(
            f"`{name}` must be {noun[(kinds - {'None'}).pop()]}, not {value!r} "
            f"({type(value).__name__})"
        )
    return plain


def _instance(name: str, cls: type[Any], options: Any, default: Any = None) -> Any:
    """Returns the options that the caller gave as a whole, or the default ones.

    Raises:
        BadInput: The options are of another class.
    """
    if options is None:
        return cls() if default is None else default
    if not isinstance(options, cls):
        raise BadInput(f"`{name}` must be {cls.__name__}, not {type(options).__name__}")
    return options


def groups_of(verb: Callable[..., Any]) -> dict[str, Group]:
    """Returns the option classes of a verb by keyword, with the classes that they contain."""
    groups = {}
    for container, (cls, excluded) in _option_classes(verb).items():
        hints = get_type_hints(cls)
        parts = {name: hint for name, hint in hints.items() if name.endswith("_options")}
        names = {item.name for part in parts.values() or (cls,) for item in fields(part)}
        if unknown := excluded - names - set(parts):
            raise ValueError(f"{cls.__name__} has no field {min(unknown)}")
        for name, part in (parts or {container: cls}).items():
            if name not in excluded:
                shown = tuple(item for item in fields(part) if item.name not in excluded)
                groups[name] = Group(name, part, shown, container)
    return groups


def _option_classes(verb: Callable[..., Any]) -> dict[str, tuple[type[Any], set[str]]]:
    """Returns the classes of a verb's parameters `..._options`, each with its excluded fields."""
    function: Any = inspect.unwrap(verb)
    classes = {}
    for name, annotation in function.__annotations__.items():
        if not name.endswith("_options"):
            continue
        if isinstance(annotation, str):
            annotation = eval(annotation, function.__globals__)
        cls, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not (isinstance(cls, type) and is_dataclass(cls)):
            raise ValueError(f"`{name}` of {function.__name__} is annotated with no option class")
        excluded = {name for note in notes if isinstance(note, _Without) for name in note.names}
        classes[name] = (cls, excluded)
    return classes


def _as_parameter(item: Field[Any]) -> Parameter:
    default = item.default
    if default is MISSING:
        default = Parameter.empty if item.default_factory is MISSING else item.default_factory()
    return Parameter(item.name, Parameter.KEYWORD_ONLY, default=default, annotation=item.type)
