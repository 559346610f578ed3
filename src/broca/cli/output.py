"""Formats and prints results, and makes out folders."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from broca.cli.wording import tell

if TYPE_CHECKING:
    from rich.console import Console

    from broca.cli.progress import PrintOptions
    from broca.reports.tables import Table
    from broca.results.base import Interval

R = TypeVar("R")

STDOUT = 1
"""The file descriptor of stdout."""

WIDTH = 160
"""Width of tables in a pipe: 80 columns would truncate the names of tasks."""


_results_stream: TextIO | None = None


def keep_stdout_for_results(*, json: bool = False) -> None:
    """Redirects what others print from stdout to stderr.

    Native libraries and Ray's processes are redirected always. Python's own output, such as what
    the functions of a task file print, goes to stdout unless stdout holds JSON. If stdout is not
    file descriptor 1, as under a test that captures it, nothing changes.

    Args:
        json: Whether stdout holds only what `print_json` and `print_text` print.
    """
    global _results_stream
    try:
        if sys.stdout.fileno() != STDOUT:
            return
    except (AttributeError, OSError, ValueError):  # no stream, or a stream without a descriptor
        return
    sys.stdout.flush()
    descriptor = os.dup(STDOUT)
    os.dup2(sys.stderr.fileno(), STDOUT)
    _results_stream = open(  # noqa: SIM115  # it is closed when the process ends
        descriptor, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, newline=None
    )
    sys.stdout = sys.stderr if json else _results_stream


def print_text(text: str) -> None:
    """Prints a text on stdout as it is, with what was printed before.

    If stdout takes no more, the process ends with 1: without a word if its reader has ended.
    """
    stream = _results_stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python flushes it once more
        if not isinstance(error, BrokenPipeError):
            tell(f"broca: stdout cannot be written ({error.strerror}): let it go to another file")
        sys.exit(1)


def print_json(data: Any) -> None:
    """Prints plain data as JSON on stdout."""
    print_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_result(result: Any) -> None:
    """Prints a result on stdout, byte for byte as in its file."""
    from broca.results.codec import encode

    print_text(encode(result))


def show(result: R, page: Path, options: PrintOptions, in_words: Callable[[R, Path], None]) -> None:
    """Prints a result as JSON, or in words with the path of its page, depending on the options."""
    if options.json:
        print_result(result)
    else:
        in_words(result, page)


def print_lines(screen: Console, lines: Iterable[str], last: str) -> None:
    """Prints lines, and a last line that names a file and is not wrapped."""
    for line in lines:
        screen.print(line, markup=False)
    screen.print(last, markup=False, soft_wrap=True)


def console() -> Console:
    """Returns the console on which tables are printed."""
    from rich.console import Console

    width_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if width_known else WIDTH)


def print_table(
    screen: Console, title: str, columns: str | tuple[str, ...], lines: Any, *, left: int = 1
) -> None:
    """Prints a table that has lines.

    Args:
        screen: Console on which it is printed.
        title: Its title.
        columns: Names of the columns, as a tuple or joined by `|`.
        lines: Cells of the lines; a line that is not empty may end with a style in brackets.
        left: Number of columns that are aligned to the left.
    """
    names = columns.split("|") if isinstance(columns, str) else columns
    _print_cells(screen, title, [(name, number < left) for number, name in enumerate(names)], lines)


def print_page_table(
    screen: Console, table: Table, columns: str = "", *, most: int | None = None
) -> None:
    """Prints a table of a page that has rows, with emphasized rows in bold.

    Args:
        screen: Console on which it is printed.
        table: The table.
        columns: Names of the columns to print, joined by `|`; all by default. A column without
            known values is left out.
        most: Maximum number of rows.
    """
    names = columns.split("|") if columns else [column.name for column in table.columns]
    every = [column.name for column in table.columns]
    numbers = [number for number in map(every.index, names) if number in table.known_columns]
    shown = [table.columns[number] for number in numbers]
    _print_cells(
        screen,
        table.caption,
        [(column.name.strip(), column.words or column.components) for column in shown],
        (
            (
                *(
                    "" if row[number] is None else _ascii(column.show(row[number]))
                    for number, column in zip(numbers, shown, strict=True)
                ),
                "bold" if place in table.strong else None,
            )
            for place, row in enumerate(table.rows[:most])
        ),
    )


def _print_cells(
    screen: Console, title: str, columns: Sequence[tuple[str, bool]], lines: Any
) -> None:
    """Prints a table that has lines; each column has a name, and whether it is aligned left."""
    from rich.table import Table as Printed
    from rich.text import Text

    lines = list(lines)
    if not lines:
        return
    printed, count = Printed(title=Text(title)), len(columns)
    for name, left in columns:
        printed.add_column(name, justify="left" if left else "right")
    for line in lines:
        printed.add_row(*(Text(cell) for cell in line[:count]), style=(*line, None)[count])
    screen.print(printed)


def _ascii(text: str) -> str:
    """Replaces the signs of a page by those that any terminal has."""
    return text.replace("−", "-").replace("→", "->")


def interval_text(interval: Interval, form: str = "+.2f", *, scale: float = 1.0) -> str:
    """Formats a value and the ends of its interval, as in `+0.50 [+0.40, +0.60]`.

    Args:
        interval: The value with its interval.
        form: Format of the numbers.
        scale: Factor of the numbers.
    """
    ends = (interval.value, interval.low, interval.high)
    value, low, high = (format(scale * end, form) for end in ends)
    return f"{value} [{low}, {high}]"


def points(interval: Interval | None) -> str:
    """Formats a share and its interval in points; an unknown share is empty."""
    return "" if interval is None else interval_text(interval, ".1f", scale=100)


def folder_of(out: str | None, target: str | None) -> Path:
    """Creates the out folder: the given one, else the run's, else `broca-out`."""
    from broca.results.files import check_out_folder

    return check_out_folder(out or target or "broca-out")
