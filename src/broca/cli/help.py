"""The layout of `--help`: plain lines in two columns, without boxes."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

MENUS = {
    "methods": "broca.searches:METHODS",
    "neuron_methods": "broca.neurons.methods:NEURON_METHODS",
    "recoveries": "broca.recovery:RECOVERIES",
    "studies": "broca.studies.paper:NAMES",
}
"""The names that placeholders such as `{methods}` stand for; read when they are shown."""

NAMES = 30
"""Maximum width of the column of names."""


class Layout:
    """Prints the parts of a help page; cyclopts calls it."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Prints a group of flags, positional arguments or commands."""
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        if not panel.entries:
            return
        table = Table.grid(padding=(0, 2))
        table.add_column(max_width=NAMES, overflow="fold")
        table.add_column()
        for entry in panel.entries:
            text = _filled(_plain(entry.description))
            if entry.default is not None:
                text += f" [default: {entry.default}]"
            if entry.required:
                text += " [required]"
            names = ", ".join(entry.display_labels_with_metavar)
            table.add_row(Text(names), Text(text.strip()))
        about = _plain(panel.description)
        console.print(Text(f"{panel.title}: {about}" if about else f"{panel.title}:", style="bold"))
        console.print(Padding(table, (0, 0, 0, 2)))
        console.print()

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Prints the usage line of the command."""
        console.print(f"Usage: {_plain(usage)}\n", markup=False, highlight=False)


def _plain(text: Any) -> str:
    """Returns the characters of a text of cyclopts or rich."""
    text = getattr(text, "primary_renderable", text)
    return str(getattr(text, "plain", text) or "").strip()


def _filled(text: str) -> str:
    """Replaces the placeholders of menus by their names."""

    def names(match: re.Match[str]) -> str:
        module, _, menu = MENUS[match[1]].partition(":")
        return ", ".join(getattr(import_module(module), menu))

    return re.sub(r"\{(\w+)\}", names, text)
