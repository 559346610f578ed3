"""The layout of `--help`: plain lines in two columns, without boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

SHIPPED = {
    "components": ("heads", "kv-groups", "attention", "mlp", "layers", "experts", "neurons"),
    "ablations": ("zero", "mean", "resample"),
    "trackers": ("trackio", "wandb", "mlflow"),
}
"""Names of records whose modules load torch; a test compares them with the records."""

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
            text = " ".join(filled(_plain(entry.description)).split())
            if entry.default not in (None, "False", "True", "", "[]"):
                text += f" [default: {entry.default}]"
            if entry.required:
                text += " [required]"
            labels = list(entry.display_labels_with_metavar)
            if panel.title == "Arguments":
                labels = [labels[0].removeprefix("--").upper()]
            table.add_row(Text(", ".join(labels)), Text(text))
        about = _plain(panel.description)
        console.print(Text(f"{panel.title}: {about}" if about else f"{panel.title}:", style="bold"))
        console.print(Padding(table, (0, 0, 0, 2)))
        console.print()

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Prints the usage line of the command."""
        console.print(f"Usage: {_plain(usage)}\n", markup=False, highlight=False)


def filled(text: str) -> str:
    """Replaces placeholders by names, and option names in backticks by their flags."""
    flags = re.sub(r"`([a-z_]+)`", lambda match: "--" + match[1].replace("_", "-"), text)
    return with_names(flags)


def with_names(text: str) -> str:
    """Replaces placeholders such as `{methods}` by the names of records."""
    menus = "|".join((*SHIPPED, "methods", "recoveries", "neuron_methods", "studies"))
    return re.sub(rf"\{{({menus})\}}", lambda match: ", ".join(_names(match[1])), text)


def _names(menu: str) -> Iterable[str]:
    """Returns the names that a placeholder stands for, those of other packages too."""
    if menu in SHIPPED:
        return SHIPPED[menu]
    if menu == "methods":
        from broca.searches import METHODS

        return METHODS
    if menu == "recoveries":
        from broca.recovery import RECOVERIES

        return RECOVERIES
    if menu == "neuron_methods":
        from broca.neurons.methods import NEURON_METHODS

        return NEURON_METHODS
    from broca.studies import NAMES as STUDIES

    return STUDIES


def _plain(text: Any) -> str:
    """Returns the characters of a text of cyclopts or rich."""
    text = getattr(text, "primary_renderable", text)
    return str(getattr(text, "plain", text) or "").strip()
