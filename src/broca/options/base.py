"""Options as frozen data classes: flags in a shell, keywords in Python, JSON in an out folder.

The sentence under a field is its help. A field whose class is `Options` is a group, whose fields
are flags and keywords like the verb's own.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import wraps
from inspect import Parameter as Keyword
from inspect import Signature
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from cyclopts import Group, Parameter

from broca.errors import BadInput, nearest
from broca.known_paths import named_in


def _whole(_: Any, tokens: Any) -> int:
    """Reads a whole number; cyclopts would round 1.5."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"'{tokens[0].value}' is not a whole number") from None


WHOLE = Parameter(converter=_whole)
"""A flag that is a whole number."""

ON = Parameter(negative_bool="no-")
"""A switch that is on by default, and off with `--no-...`."""

HIDDEN = Parameter(parse=False)
"""A field or a group that a verb does not have; it can be set only in an instance of the class."""

PYTHON_ONLY = Parameter(parse=False, show=False)
"""A keyword of Python that is no flag."""


@dataclass(frozen=True)
class Must:
    """What the values of a field must be, where its type does not say it.

    Attributes:
        be: What they must be, in words.
        holds: Whether a value is that.
    """

    be: str
    holds: Callable[[Any], bool]


def _are_names(given: Any) -> bool:
    several = given if isinstance(given, list | tuple | set | frozenset) else [given]
    return not any(one is None or isinstance(one, int | float | bytes) for one in several)


def _are_lines(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes)


NAMES = Must("a name or a list of names", _are_names)
Called = Annotated[Any, PYTHON_ONLY, Must("a function", callable)]
Said = Annotated[Any, PYTHON_ONLY, Must("lines of text", _are_lines)]
Scoped = Annotated[
    Any, PYTHON_ONLY, Must("a broca.Scope", lambda one: hasattr(one, "member_items"))
]
Names = Annotated[Any, NAMES]
"""A name or an object, or several: a list, or a text that joins names."""

Count = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
"""A whole number from 1 to a billion, more than any array of rows holds."""

Seed = Annotated[int, msgspec.Meta(ge=0)]
"""A seed of random draws."""

T = TypeVar("T")


def shown_as(title: str, sentence: str, order: int) -> Callable[[type[T]], type[T]]:
    """Shows the fields of a class under a heading of their own in `--help`."""
    return Parameter(name="*", group=Group(title, help=sentence, sort_key=order))


@Parameter(name="*")
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, eq=False)
class Options:
    """Base of all option classes, frozen data classes; it checks the types of their fields.

    Fields are keywords, except those of `field(kw_only=False)`.

    Numbers of NumPy and torch become numbers of Python, and paths become text, as JSON holds them.

    Raises:
        BadInput: A value has another type than its field, or is out of range.
    """

    HOW: ClassVar[frozenset[str]] = frozenset()
    """Fields that determine only how a result is computed: another value is the same run."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        hints = _hints(type(self))
        for item in fields(self):
            value = _checked(item.name, hints[item.name], getattr(self, item.name))
            for must in (part for part in get_args(hints[item.name]) if isinstance(part, Must)):
                if not (value is item.default is None or must.holds(value)):
                    given = f"{value!r} ({type(value).__name__})"
                    raise BadInput(f"`{item.name}` must be {must.be}, not {given}")
            object.__setattr__(self, item.name, value)

    @classmethod
    def of(cls, keywords: Mapping[str, Any], base: Self | None = None) -> Self:
        """Makes options from the names of their fields and of those of their groups.

        Args:
            keywords: Values by name; the name of a group takes an instance of its class.
            base: Values of the fields that the keywords leave out; the defaults if None.

        Raises:
            BadInput: A name is unknown, a required one is missing, or a value is refused.
        """
        left = dict(keywords)
        options = cls._taken_from(left, base)
        if left:
            name = next(iter(left))
            verb_name = cls.__name__.removesuffix("Options").lower()
            raise BadInput(f"`{verb_name}` has no parameter '{name}'{nearest(name, names_of(cls))}")
        return options

    @classmethod
    def _taken_from(cls, keywords: dict[str, Any], base: Self | None) -> Self:
        values = {}
        for item in fields(cls):
            hint = _hints(cls)[item.name]
            group = _group(hint)
            if group is None:
                if item.name in keywords and not _hidden(hint):
                    values[item.name] = keywords.pop(item.name)
                elif base is not None:
                    values[item.name] = getattr(base, item.name)
                elif item.default is item.default_factory is MISSING:
                    raise BadInput(f"`{item.name}` is missing")
                continue
            whole = keywords.pop(item.name, None)
            if whole is not None and not issubclass(group, type(whole)):
                raise BadInput(
                    f"`{item.name}` must be {group.__name__}, not {type(whole).__name__}"
                )
            if whole is None and base is not None:
                whole = getattr(base, item.name)
            inner: dict[str, Any] = {} if _hidden(hint) else keywords
            values[item.name] = group._taken_from(inner, whole)
        return cls(**values)

    def decisive(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Returns the values that determine a result, as plain values, group by group.

        Args:
            without: Names of fields and groups to leave out, such as those that hold objects.
        """
        plain = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name not in {*self.HOW, *without}:
                plain[item.name] = (
                    value.decisive() if isinstance(value, Options) else msgspec.to_builtins(value)
                )
        return plain


def flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns plain options of all groups by name; the groups of one verb share no name."""
    flattened: dict[str, Any] = {}
    for name, value in options.items():
        flattened |= flat(value) if name.endswith("_options") else {name: value}
    return flattened


R = TypeVar("R")


def verb(cls: type[Options]) -> Callable[[Callable[[Any], R]], Callable[..., R]]:
    """Makes a function of options a verb, which takes their fields as keywords.

    Positional arguments are the first fields, or all belong to the first one if that is a list;
    `settings` gives all fields as a whole.
    """

    def decorated(function: Callable[[Any], R]) -> Callable[..., R]:
        first = [item.name for item in fields(cls)]
        listed = get_origin(_within(_hints(cls)[first[0]])[0]) is list

        @wraps(function)
        def with_keywords(*arguments: Any, settings: Any = None, **keywords: Any) -> R:
            if listed and not (len(arguments) == 1 and isinstance(arguments[0], list | tuple)):
                arguments = (list(arguments),) if arguments else ()
            if len(arguments) > len(first):
                raise BadInput(f"`{function.__name__}` takes at most {len(first)} arguments")
            named = dict(zip(first, arguments, strict=False))
            if both := sorted({*named} & {*keywords}):
                raise BadInput(f"`{both[0]}` is given twice")
            if not isinstance(settings, cls | None):
                raise BadInput(f"`settings` must be {cls.__name__}, not {type(settings).__name__}")
            given = named | keywords
            options = cls.of(given, settings)
            known = [value for _, value in leaf_values(options)]
            for value in known:
                models = value if isinstance(value, list | tuple) else [value]
                if all(hasattr(model, "require_unused") for model in models):
                    for model in models:
                        model.require_unused({"settings": settings, **given})
            with named_in(known):
                return function(options)

        with_keywords.__signature__ = Signature(  # type: ignore[attr-defined]
            [*_parameters(cls), Keyword("settings", Keyword.KEYWORD_ONLY, default=None)]
        )
        return with_keywords

    return decorated


def leaves(cls: type[Options]) -> Iterator[tuple[type[Options], Field[Any]]]:
    """Yields every field that is a flag or a keyword, with the class that it belongs to."""
    for item in fields(cls):
        hint = _hints(cls)[item.name]
        group = _group(hint)
        if _hidden(hint):
            continue
        if group is None:
            yield cls, item
        else:
            yield from leaves(group)


def leaf_values(given: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yields a value and its name; in place of options, those of their fields and their groups'."""
    if isinstance(given, Options):
        for item in fields(given):
            yield from leaf_values(getattr(given, item.name), item.name)
    else:
        yield name, given


def names_of(cls: type[Options]) -> tuple[str, ...]:
    """Returns the keywords of an option class, with those of its groups."""
    return tuple(item.name for _, item in leaves(cls))


def _parameters(cls: type[Options]) -> Iterator[Keyword]:
    for owner, item in leaves(cls):
        default: Any = item.default
        if default is MISSING:
            made: Any = item.default_factory
            default = Keyword.empty if made is MISSING else made()
        kind = Keyword.KEYWORD_ONLY if item.kw_only else Keyword.POSITIONAL_OR_KEYWORD
        hint = _hints(owner, annotated=False)[item.name]
        yield Keyword(item.name, kind, default=default, annotation=hint)


_HINTS: dict[tuple[type[Options], bool], dict[str, Any]] = {}


def _hints(cls: type[Options], *, annotated: bool = True) -> dict[str, Any]:
    """Returns the types of a class's fields, computed once, with or without annotations."""
    if (cls, annotated) not in _HINTS:
        _HINTS[cls, annotated] = get_type_hints(cls, include_extras=annotated)
    return _HINTS[cls, annotated]


def _group(hint: Any) -> type[Options] | None:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return inner if isinstance(inner, type) and issubclass(inner, Options) else None


def _hidden(hint: Any) -> bool:
    return HIDDEN in get_args(hint)


def _checked(name: str, hint: Any, value: Any) -> Any:
    """Returns the value of a field as its type has it.

    Raises:
        BadInput: The value is of another type, or out of range.
    """
    if _group(hint) is not None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    elif isinstance(value, dict):
        value = {key: one.tolist() if hasattr(one, "tolist") else one for key, one in value.items()}
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        literals = [part for part in _within(hint) if get_origin(part) == Literal]
        known = [choice for part in literals for choice in get_args(part)]
        if known:
            says = f"is unknown{nearest(str(value), known)}: use {', '.join(known)}"
            raise BadInput(f"`{name}` '{value}' {says}") from None
        kind = type(value).__name__
        raise BadInput(
            f"`{name}` must be {_expected(str(error))}, not {value!r} ({kind})"
        ) from None


_NOUNS = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "a text"}
_BOUNDS = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}


def _expected(message: str) -> str:
    """Returns in words what a message of msgspec expects, such as Expected `int` >= 1."""
    match = re.match(r"Expected `(\w+)[^`]*`(?: ([<>]=?) ([\d.]+))?", message)
    if match is None:
        return message.replace("`", "")
    kind, sign, bound = match.groups()
    return f"{_BOUNDS[sign]} {float(bound):,.15g}" if sign else _NOUNS.get(kind, f"a {kind}")


def _within(hint: Any) -> tuple[Any, ...]:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return (inner, *(part for part in get_args(inner) if get_origin(part) is not None))
