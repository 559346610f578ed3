"""Results as the commands print and write them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from broca.cli.commands import PrintOptions

R = TypeVar("R")

STDOUT = 1
"""The file descriptor of stdout."""

WIDTH = 160
"""Columns of tables that go into a pipe, which has no width: 80 would cut the names of tasks."""


def keep_stdout_for_results() -> None:
    """Sends to stderr what native libraries and Ray's processes write to file descriptor 1.

    What Python prints still goes to stdout. So `--json` leaves the JSON alone there. Where stdout
    is no longer descriptor 1, as under a test that captures it, nothing changes.
    """
    try:
        if sys.stdout.fileno() != STDOUT:
            return
    except (AttributeError, OSError, ValueError):  # no stream, or one without a descriptor
        return
    sys.stdout.flush()
    kept = os.dup(STDOUT)
    os.dup2(sys.stderr.fileno(), STDOUT)
    sys.stdout = open(  # noqa: SIM115  # it is closed when the process ends
        kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, newline=None
    )


def print_json(data: Any) -> None:
    """Prints plain data as JSON on stdout."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_result(result: Any) -> None:
    """Prints a result on stdout, byte for byte as its file."""
    from broca.results.codec import encode

    sys.stdout.write(encode(result))


def show(result: R, page: Path, options: PrintOptions, in_words: Callable[[R, Path], None]) -> None:
    """Prints a result as JSON, or in words with the place of its page, as the options say."""
    if options.json:
        print_result(result)
    else:
        in_words(result, page)


def print_lines(screen: Console, lines: Iterable[str], last: str) -> None:
    """Prints lines as they are, and a last one that names a file and is not wrapped."""
    for line in lines:
        screen.print(line, markup=False)
    screen.print(last, markup=False, soft_wrap=True)


def console() -> Console:
    """Where tables are printed."""
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if known else WIDTH)


def print_table(
    screen: Console, title: str, columns: str | tuple[str, ...], lines: Any, *, left: int = 1
) -> None:
    """Prints a table; nothing where it has no lines.

    Args:
        screen: Where.
        title: Its title.
        columns: Their names, as a tuple or joined by `|`.
        lines: Their cells; a line that is not empty may end with a style in brackets.
        left: How many columns are aligned to the left.
    """
    from rich.table import Table
    from rich.text import Text

    lines = list(lines)
    if not lines:
        return
    names = columns.split("|") if isinstance(columns, str) else columns
    table = Table(title=Text(title))
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < left else "right")
    for line in lines:
        table.add_row(*(Text(cell) for cell in line[: len(names)]), style=(*line, None)[len(names)])
    screen.print(table)


def folder_of(out: str | None, target: str | None) -> Path:
    """The out folder, which is made: what was given, else the run's, else `broca-out`."""
    from broca.results.files import check_out_folder

    return check_out_folder(out or target or "broca-out")
