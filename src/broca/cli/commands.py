"""Commands from functions: parameters and the fields of option classes become flags."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from cyclopts import App, Group
from cyclopts import Parameter as Flag

from broca import options
from broca.cli.wording import in_flags
from broca.options import ProgressOptions, groups_of, parameter_help, takes_options, without

FIRST = ("task", "tasks", "others", "method", "rows", "k", "out")
"""The most important options: `--help` shows them before all others."""

SENTENCES = {
    "model": "reference, reference-small, planted, a model folder or a hub id.",
    "task": "The task to localize: shipped, own or lm-eval's.",
    "tasks": "T1,T2,...; auto: all shipped ones, or those of `include_path`.",
    "others": "Tasks that the heads should not affect: T1,T2 or auto or nothing.",
    "seed": "Seed of all random draws.",
    "json": "Print JSON on stdout.",
}
"""Help of parameters that several commands have; a command's docstring may replace it."""


@dataclass(frozen=True, kw_only=True)
class FolderOptions:
    """Whether a run in the out folder is resumed or replaced."""

    resume: bool = False
    """Refuse an `out` without a run; by default the same command resumes the run there."""

    fresh: bool = False
    """Start again: remove everything that a run wrote in `out`, its journal too."""


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """How results and progress are printed."""

    json: bool = False
    """Print the result as JSON on stdout, as in its file."""

    plain: bool = False
    """Print progress as plain lines, the default where stderr is not a terminal."""

    quiet: bool = False
    """Print no progress, only the result, warnings and errors."""


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Where the command is logged."""

    log: str | None = None
    """Log settings, progress, scores and the result: {trackers}."""

    log_project: str = "broca"
    """The tracker's project or experiment."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where a measuring command writes, logs and prints its result."""

    folder_options: FolderOptions = field(default_factory=FolderOptions)
    """Whether a run in the out folder is resumed or replaced."""

    log_options: LogOptions = field(default_factory=LogOptions)
    """Where the command is logged."""

    print_options: PrintOptions = field(default_factory=PrintOptions)
    """How results and progress are printed."""


SharedFolderOutput = Annotated[OutputOptions, without("folder_options")]
"""Commands of several kinds share the out folder."""


NOTHING_RENAMED: Mapping[str, str] = {}
"""Of a command whose parameters have the names of the library."""

OF_PYTHON = {field.name for field in fields(ProgressOptions)}
"""Parameters of verbs that are no flags."""


def command(
    function: Callable[..., None],
    *,
    sentences: Mapping[str, str] = SENTENCES,
    renamed: Mapping[str, str] = NOTHING_RENAMED,
) -> Callable[..., None]:
    """Makes a function a command of the command line.

    Positional-only parameters become positional arguments, other parameters and the fields of
    option classes become flags; a positional argument that is a list takes all remaining words. The
    help of a parameter comes from the docstring's `Args` section, the field or `sentences`;
    placeholders such as `{methods}` stand for the names of a menu (`broca.cli.help.MENUS`).

    Args:
        function: The function; the first paragraph of its docstring is the command's help.
        sentences: Help of parameters that several commands have.
        renamed: The command's parameters, by those of the library that they stand for under another
            name; messages of the library show their flags.
    """
    verb = takes_options(function)
    groups = groups_of(function)
    titles = {
        field.name: Group(
            group.cls.__name__.removesuffix("Options"),
            help=(group.cls.__doc__ or "").split("\n")[0],
            sort_key=number,
        )
        for number, group in enumerate(groups.values(), start=3)
        for field in group.fields
        if field.name not in FIRST
    }
    wholes = {name for group in groups.values() for name in (group.parameter, group.container)}
    hints = get_type_hints(function)
    for group in groups.values():
        types = get_type_hints(group.cls)
        hints |= {field.name: types[field.name] for field in group.fields}
    parameters = [
        parameter
        for name, parameter in inspect.signature(verb).parameters.items()
        if name not in wholes | OF_PYTHON
    ]
    flags = {parameter.name: _flag(parameter) for parameter in parameters}
    flags |= {parameter: flags[name] for parameter, name in renamed.items()}
    explained = {**sentences, **parameter_help(verb.__doc__ or "")}
    first, others = Group("Options", sort_key=1), Group("More options", sort_key=2)
    if not any(parameter.name in FIRST and _is_flag(parameter) for parameter in parameters):
        others = first
    shown = [
        _shown(
            parameter,
            hints[parameter.name],
            in_flags(explained[parameter.name], flags),
            first if parameter.name in FIRST else titles.get(parameter.name, others),
        )
        for parameter in sorted(parameters, key=_place)
    ]
    positions = [parameter for parameter in shown if not _is_flag(parameter)]

    def run(*words: Any, **keywords: Any) -> None:
        values = list(words)
        if positions and positions[-1].kind is Parameter.VAR_POSITIONAL:
            values[len(positions) - 1 :] = [values[len(positions) - 1 :]]
        verb(*values, **keywords)

    run.__name__ = function.__name__
    run.__doc__ = _first_paragraph(function.__doc__ or "")
    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.flags = flags  # type: ignore[attr-defined]
    run.groups = groups  # type: ignore[attr-defined]
    return run


def command_of(
    verb: str,
    *,
    sentences: Mapping[str, str] = SENTENCES,
    renamed: Mapping[str, str] = NOTHING_RENAMED,
    hidden: Sequence[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function the command of a verb, whose parameters stand for `**parameters`.

    The verb's first parameter becomes a position, and parameters that the function declares replace
    those of the verb. The verb's source is parsed, because importing a verb loads torch; its
    defaults are therefore literals.

    Args:
        verb: Its place, `module:function`.
        sentences: Help of parameters that several commands have.
        renamed: The command's parameters, by those of the verb that they replace under another
            name; messages of the library show their flags.
        hidden: Parameters of the verb that the command does not have.
    """

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        declared = {
            name: parameter.replace(annotation=hints[name])
            for name, parameter in inspect.signature(function).parameters.items()
            if name != "parameters"
        }
        of_verb, explained = _parameters_of(verb, without={*declared, *renamed, *hidden})
        names = [renamed.get(name, name) for name in of_verb if name not in hidden]
        positions = [name for name, parameter in declared.items() if not _is_flag(parameter)]
        parameters = [declared.pop(name) if name in declared else of_verb[name] for name in names]
        parameters = sorted([*parameters, *declared.values()], key=lambda item: item.kind)
        signature = Signature(parameters)

        def merged(*words: Any, **keywords: Any) -> None:
            bound = signature.bind(*words, **keywords)
            bound.apply_defaults()
            arguments = bound.arguments
            function(*[arguments.pop(name) for name in positions], **arguments)

        merged.__name__, merged.__doc__ = function.__name__, function.__doc__
        merged.__annotations__ = {item.name: item.annotation for item in parameters}
        merged.__signature__ = signature  # type: ignore[attr-defined]
        return command(merged, sentences={**explained, **sentences}, renamed=renamed)

    return decorated


def _parameters_of(
    verb: str, *, without: Collection[str]
) -> tuple[dict[str, Parameter], dict[str, str]]:
    """Returns the parameters of a verb, and their sentences in its docstring.

    Args:
        verb: Its place, `module:function`.
        without: Parameters of which only the name is needed, since the command has others.
    """
    module, _, name = verb.partition(":")
    (source,) = (
        node
        for node in _source(module).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    words = source.args
    missing: list[ast.expr | None] = [None] * (len(words.args) - len(words.defaults))
    defaults = [*missing, *words.defaults, *words.kw_defaults]
    parameters: dict[str, Parameter] = {}
    if words.vararg is not None:
        name = words.vararg.arg
        parameters[name] = Parameter(name, Parameter.POSITIONAL_ONLY, annotation=list[str])
    for argument, default in zip((*words.args, *words.kwonlyargs), defaults, strict=True):
        if argument.arg in OF_PYTHON:
            continue
        if argument.arg in without:
            parameters[argument.arg] = Parameter(argument.arg, Parameter.KEYWORD_ONLY)
            continue
        assert argument.annotation is not None
        parameters[argument.arg] = Parameter(
            argument.arg,
            Parameter.KEYWORD_ONLY if parameters else Parameter.POSITIONAL_ONLY,
            default=Parameter.empty if default is None else _default(default),
            annotation=eval(ast.unparse(argument.annotation), {**vars(options), **_TYPES}),
        )
    return parameters, parameter_help(ast.get_docstring(source) or "")


def _default(expression: ast.expr) -> Any:
    """Returns the value of a literal default; an empty sequence becomes an empty word."""
    value = ast.literal_eval(expression)
    return "" if value == () else value


_TYPES = {
    "Annotated": Annotated,
    "Path": Path,
    "Sequence": Sequence,
    **dict.fromkeys(("Exportable", "Form", "GatedModel", "Localization", "NeuronSet", "Task"), str),
}
"""Types in the parameters of verbs, besides option classes; a word names a model, a task, ..."""


def flags_of(run: Callable[..., Any]) -> Mapping[str, str]:
    """Returns the flags of a command by parameter; empty if it is not a command of broca."""
    return getattr(run, "flags", {})


def make_app(name: str, text: str, commands: Mapping[str, str | Mapping[str, str]]) -> App:
    """Makes a command that consists of commands.

    Args:
        name: Its name.
        text: Its help.
        commands: The places of its commands, `module:function`, by name; loaded on first use. The
            key of a nested mapping is the heading of its commands.
    """
    from broca.cli.help import Layout

    flat = all(isinstance(place, str) for place in commands.values())
    app = App(
        name=name,
        help=text,
        help_format="plaintext",
        help_formatter=Layout(),
        default_parameter=Flag(negative=(), show_choices=False, allow_repeating=True),
        group_commands=Group("Commands" if flat else "General", sort_key=0 if flat else 100),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        verbose=False,
    )
    for number, (word, place) in enumerate(commands.items()):
        if isinstance(place, str):
            app.command(place, name=word, sort_key=number, help=_sentence(place))
            continue
        heading = Group(word, sort_key=number)
        for order, (inner, where) in enumerate(place.items()):
            app.command(where, name=inner, sort_key=order, help=_sentence(where), group=heading)
    return app


def _sentence(place: str) -> str:
    """Returns the sentence of a command in a menu, without importing the command."""
    module, _, name = place.partition(":")
    target = getattr(sys.modules.get(module), name, None)
    if target is not None:
        return target.help if isinstance(target, App) else _first_paragraph(target.__doc__)
    for node in _source(module).body:
        if isinstance(node, ast.FunctionDef):
            makers = [ast.unparse(decorator) for decorator in node.decorator_list]
            if node.name == name or f"{name}.default" in makers:
                return _first_paragraph(ast.get_docstring(node) or "")
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            call = node.value
            if isinstance(call, ast.Call) and ast.unparse(call.func) == make_app.__name__:
                return str(ast.literal_eval(call.args[1]))
    raise ValueError(f"there is no command {place}")


def _source(module: str) -> ast.Module:
    """Parses the source of a module without importing it or the packages that contain it."""
    package, *parts = module.split(".")
    spec = find_spec(package)
    assert spec is not None, f"there is no module {module}"
    file = Path(str(spec.origin))
    if parts:
        place = file.parent.joinpath(*parts)
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _first_paragraph(docstring: str) -> str:
    return " ".join(docstring.split("\n\n")[0].split())


def _is_flag(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY


def _flag(parameter: Parameter) -> str:
    name = parameter.name.replace("_", "-")
    return f"--{name}" if _is_flag(parameter) else name.upper()


def _place(parameter: Parameter) -> tuple[bool, int]:
    """Sort key: positional arguments, then the most important flags, then all others."""
    first = FIRST.index(parameter.name) if parameter.name in FIRST else len(FIRST)
    return _is_flag(parameter), first if _is_flag(parameter) else 0


def _shown(parameter: Parameter, hint: Any, sentence: str, group: Group) -> Parameter:
    """Annotates a parameter for cyclopts, which checks defaults too if pydantic is imported."""
    kind, is_list = _kind(hint)
    value: Any
    if not _is_flag(parameter):
        note = Flag(help=sentence, required=parameter.default is Parameter.empty)
        position = Parameter.VAR_POSITIONAL if is_list else Parameter.POSITIONAL_ONLY
        if is_list:
            return Parameter(parameter.name, position, annotation=Annotated[kind, note])
        value = kind if parameter.default is not None else kind | None
        return parameter.replace(kind=position, annotation=Annotated[value, note])
    flag = _flag(parameter)
    note = Flag(
        name=flag,
        help=sentence,
        group=group,
        negative=f"--no-{flag[2:]}" if kind is bool and parameter.default is True else (),
        converter=(_integers if is_list else _integer) if kind is int else None,
        allow_leading_hyphen=True,
        show_default=parameter.default not in (None, False, True, "", ()),
        allow_repeating=None if is_list else True,
    )
    value = list[kind] if is_list else kind  # type: ignore[valid-type]
    if parameter.default is None:
        value = value | None
    return parameter.replace(annotation=Annotated[value, note])


def _kind(hint: Any) -> tuple[type[Any], bool]:
    """Returns the type of a word on the command line, and whether several words are allowed."""
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not type(None)]
    if get_origin(hint) is list:
        return kinds[0], True
    for kind in kinds:
        if get_origin(kind) is list:
            return get_args(kind)[0], True
    return next((kind for kind in (bool, int, float) if kind in kinds), str), False


def _integer(_: Any, tokens: Sequence[Any]) -> int:
    """Reads a whole number; cyclopts would round 1.5."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"'{tokens[0].value}' is not a whole number") from None


def _integers(_: Any, tokens: Sequence[Any]) -> list[int]:
    """Reads several whole numbers."""
    return [_integer(int, [token]) for token in tokens]
