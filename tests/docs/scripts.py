"""The scripts of `docs/`, which are in no package."""

import importlib.util
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def script(name):
    """Loads a script by its name."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
