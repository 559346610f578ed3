"""Words on the command line: lines on stdout and stderr, flags in place of parameters."""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from shutil import get_terminal_size
from textwrap import fill
from typing import TextIO

_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}

_QUOTED = re.compile(r"`([A-Za-z_][A-Za-z0-9_]*)`")


def in_flags(text: str, flags: Mapping[str, str]) -> str:
    """Replaces parameters in backticks by the flags of a command.

    Args:
        text: A message or a sentence of the library.
        flags: Flags such as `--include-path`, by parameter. Other words in backticks stay.
    """
    return _QUOTED.sub(lambda match: flags.get(match[1], match[0]), text)


def printable(text: str) -> str:
    """Writes control characters, which may come from files, as their codes."""
    return text.translate(_CONTROLS)


def plainly(text: str) -> str:
    """Writes a text of a result in signs of any terminal."""
    return printable(text.replace("−", "-").replace("→", "->"))


def wrapped(line: str, stream: TextIO) -> str:
    """Wraps a line between words if its reader is a terminal; what follows two spaces is indented.

    Addresses and paths stay whole, so that they can be copied.
    """
    if not stream.isatty():
        return line
    width = get_terminal_size().columns
    column = max((match.end() for match in re.finditer(r"\s{2,}", line[: width // 2])), default=0)
    return fill(
        line, max(width, 20), subsequent_indent=" " * column, replace_whitespace=False,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def say(*lines: str) -> None:
    """Prints lines on stdout."""
    sys.stdout.writelines(f"{wrapped(printable(line), sys.stdout)}\n" for line in lines)


def tell(*lines: str) -> None:
    """Prints lines on stderr, if it takes them."""
    with suppress(OSError):
        sys.stderr.writelines(f"{wrapped(printable(line), sys.stderr)}\n" for line in lines)


def duration(seconds: float) -> str:
    """Formats a time for people: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
