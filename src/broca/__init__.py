"""broca finds which parts of a language model a capability needs, by ablating them.

The public names are loaded on first use, so that `import broca` and `broca --help` are quick. The
stub beside this file, which type checkers read, says where each is defined.
"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {
    name: module for module, name in re.findall(r"^from (broca\.\S+) import (\w+)", _STUB, re.M)
}
"""Where each public name is defined."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name == "neurons":  # a namespace of functions
        return import_module("broca.neurons")
    if name not in _HOME:
        raise AttributeError(f"module 'broca' has no attribute '{name}'")
    if "torch" not in sys.modules:
        from broca.executors.process import spin_briefly

        spin_briefly()
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
