"""How the library's messages read on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

_QUOTED = re.compile(r"`([A-Za-z_][A-Za-z0-9_]*)`")


def in_flags(text: str, flags: Mapping[str, str]) -> str:
    """The text with parameters in backticks written as the flags of a command.

    Args:
        text: A message or a sentence of the library.
        flags: Flags such as `--include-path`, by parameter. Other words in backticks stay.
    """
    return _QUOTED.sub(lambda match: flags.get(match[1], match[0]), text)
