"""Formats and prints results, and makes out folders."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from broca.cli.wording import plainly, tell, wrapped
from broca.errors import BrocaError
from broca.known_paths import place_of

if TYPE_CHECKING:
    from rich.console import Console

    from broca.results.base import Result
    from broca.results.pages.tables import Table

STDOUT = 1
"""The file descriptor of stdout."""

WIDTH = 160
"""Width of tables in a pipe: 80 columns would truncate the names of tasks."""


ASKED = ("alternatives", "backups")
"""Tables that only an option makes; they are printed without `details` too."""


class _Stdout(io.FileIO):
    """Stdout; if it takes no more, the process ends with 1, or with 141 if its reader has ended."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # Python flushes it once more
            if isinstance(error, BrokenPipeError):
                sys.exit(128 + signal.SIGPIPE)
            tell(f"broca: stdout cannot be written ({error.strerror}): let it go to another file")
            sys.exit(1)


_results_stream: TextIO | None = None


def keep_stdout_for_results(*, json: bool = False) -> None:
    """Redirects what others print from stdout to stderr.

    Native libraries and Ray's processes are redirected always. Python's own output, such as what
    the functions of a task file print, goes to stdout unless stdout holds JSON. Signs that the
    encoding of stdout lacks are written as codes. If stdout is not file descriptor 1, as under a
    test that captures it, nothing changes.

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
    raw = io.BufferedWriter(_Stdout(os.dup(STDOUT), "w"))
    os.dup2(sys.stderr.fileno(), STDOUT)
    encoding = "utf-8" if json else sys.stdout.encoding  # as JSON is in files
    errors = sys.stdout.errors if encoding.lower() == "utf-8" else "backslashreplace"
    _results_stream = io.TextIOWrapper(raw, encoding, errors)
    sys.stdout = sys.stderr if json else _results_stream


def print_text(text: str) -> None:
    """Prints a text on stdout as it is, with what was printed before."""
    stream = _results_stream or sys.stdout
    stream.write(text)
    stream.flush()


def print_json(data: Any) -> None:
    """Prints plain data as JSON on stdout."""
    print_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_result(result: Any) -> None:
    """Prints a result on stdout, byte for byte as in its file."""
    from broca.results.files import encode

    print_text(encode(result))


def show(
    result: Result, path: Path | None, *, json: bool, details: bool = True, then: str = ""
) -> None:
    """Prints a result as JSON, or its lines and tables and the path of its page or file.

    Args:
        result: The result.
        path: Its page or file.
        json: Whether it is printed as JSON.
        details: Whether all tables and notes are printed; else the first table and the verdict.
        then: The next command; with one, the verdict is printed last, above it.
    """
    if json:
        print_result(result)
        return
    parts = list(result.terminal())
    tables = [place for place, part in enumerate(parts) if not isinstance(part, str)]
    if then and tables:
        verdict, rest = parts[: tables[0]], parts[tables[0] :]
        asked = [part for part in rest[1:] if getattr(part, "name", "") in ASKED]
        parts = [*(rest if details else [rest[0], *asked]), *verdict]
    screen = console()
    for part in parts:
        if isinstance(part, str):
            _print_lines(part)
        else:
            print_table(screen, part)
    if path is not None:
        label = "report" if path.suffix == ".html" else "written"
        _print_lines(f"{label}: {path}")
    if then:
        _print_lines(f"next: {then}")


def _print_lines(text: str) -> None:
    for line in text.split("\n"):
        print_text(f"{wrapped(plainly(line), _results_stream or sys.stdout)}\n")


def console() -> Console:
    """Returns the console on which tables are printed."""
    from rich.console import Console

    width_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if width_known else WIDTH)


def print_table(screen: Console, table: Table) -> None:
    """Prints a table that has rows, with emphasized rows in bold and in signs of any terminal."""
    from rich.table import Table as Printed
    from rich.text import Text

    if not table.rows:
        return
    printed = Printed(title=Text(table.caption))
    for column, words in table.headings:
        printed.add_column(
            column.name.strip(), justify="left" if words else "right", overflow="fold"
        )
    for place, texts in enumerate(table.lines):
        cells = (Text(plainly(text)) for text in texts)
        printed.add_row(*cells, style="bold" if place in table.strong else None)
    screen.print(printed)


@contextmanager
def out_folder(out: str | Path) -> Iterator[Path]:
    """Creates an out folder; a command that is refused leaves none that was not there before."""
    from broca.results.files import check_out_folder

    place = place_of(out)
    new = [folder for folder in (place, *place.parents) if not folder.exists()]
    try:
        yield check_out_folder(out)
    except BrocaError:
        for folder in new:
            with suppress(OSError):  # something is in it
                folder.rmdir()
        raise
