"""The source files that determine what a function or a class does."""

import hashlib
import inspect
import re
from pathlib import Path
from typing import Any

_IMPORTS = re.compile(rb"^\s*(?:from|import)\b[^(\n]*(?:\([^)]*\))?", re.MULTILINE)


def code_digest(code: Any) -> str:
    """Returns the digest of the file of a function or class, and of files near it that it imports.

    These lie in the folder of the file, or in a folder in it. A file of an installed package, or of
    broca, counts alone.

    Returns:
        32 hexadecimal digits; empty without a file.
    """
    try:
        start = Path(inspect.getsourcefile(getattr(code, "func", code)) or "")
    except (TypeError, OSError):  # a callable object, or a class that was typed in a notebook
        return ""
    if not start.is_file():
        return ""
    files = [start]
    installed = not {"site-packages", "dist-packages"}.isdisjoint(start.parts)
    installed |= start.is_relative_to(Path(__file__).parent)
    patterns = () if installed else ("*.py", "*/*.py")
    near = [file for pattern in patterns for file in sorted(start.parent.glob(pattern))]
    for file in files:
        words = set(re.findall(rb"\w+", b" ".join(_IMPORTS.findall(file.read_bytes()))))
        files += [one for one in near if one.stem.encode() in words and one not in files]
    return hashlib.blake2b(b"".join(map(Path.read_bytes, files)), digest_size=16).hexdigest()
