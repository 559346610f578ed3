"""Commands from functions of option classes, whose fields cyclopts turns into flags."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from cyclopts import App, Group, Parameter

from broca.cli.help import Layout
from broca.options import Options, leaves
from broca.options.verbs import ARGUMENTS

_OPTIONS = Group("Options", sort_key=1)


def make_app(name: str, text: str, menus: Mapping[str, Sequence[Callable[..., None] | App]]) -> App:
    """Makes a command that consists of commands.

    Args:
        name: Its name.
        text: Its help.
        menus: Its commands by the heading of their menu. A function has the name of its command,
            and the first paragraph of its docstring is the help.
    """
    app = App(
        name=name, help=text, help_format="plaintext", help_formatter=Layout(),
        default_parameter=Parameter(
            negative_bool=(), negative_iterable=(), show_choices=False,
            allow_leading_hyphen=True, allow_repeating=True,
        ),
        group_arguments=ARGUMENTS, group_parameters=_OPTIONS,
        group_commands=Group("General", sort_key=100),
        result_action="return_value", suppress_keyboard_interrupt=False, verbose=False,
    )  # fmt: skip
    for number, (heading, commands) in enumerate(menus.items()):
        group = Group(heading, sort_key=number)
        for order, command in enumerate(commands):
            if isinstance(command, App):
                command.group, command.sort_key = group, order
                app.command(command)
            else:
                app.command(command, sort_key=order, group=group)
    return app


def flags_of(command: Callable[..., Any]) -> dict[str, str]:
    """Returns the flags of a command by the names of options, as its messages show them."""
    if hasattr(command, "flags"):  # it has flags that are no options of broca
        return dict(command.flags)
    try:
        hints = get_type_hints(command)
    except NameError:  # a command of cyclopts, such as --help
        return {}
    options = [h for h in hints.values() if isinstance(h, type) and issubclass(h, Options)]
    own = [name for name, hint in hints.items() if hint not in options and name != "return"]
    return {name: "--" + name.replace("_", "-") for name in own} | {
        item.name: _flag(owner, item.name) if item.kw_only else item.name.upper()
        for cls in options
        for owner, item in leaves(cls)
    }


def _flag(cls: type[Options], name: str) -> str:
    parts = get_args(get_type_hints(cls, include_extras=True)[name])
    named = [name for part in parts if isinstance(part, Parameter) for name in part.name or ()]
    return named[0] if named else "--" + name.replace("_", "-")
