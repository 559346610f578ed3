"""The function that a reference in `TaskOptions` names."""

from __future__ import annotations

from broca.errors import BadInput
from broca.options import Reference, TaskOptions


def reference_function(options: TaskOptions) -> Reference | None:
    """Returns the function that gives right answers, if one was named.

    Raises:
        BadInput: The file or the function does not exist, or cannot be loaded.
    """
    named = options.reference
    if not isinstance(named, str):
        function: Reference = named
        return function
    if named in ("own", "gold"):
        return None
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    file, _, name = named.rpartition(":")
    path = Path(file).expanduser()
    spec = spec_from_file_location(path.stem, path) if path.suffix == ".py" else None
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(
            f"`reference` '{named}': '{file}' is not a Python file; use FILE.py:FUNCTION"
        )
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise anything
        raise BadInput(
            f"`reference` '{named}': the file could not be run: {type(error).__name__}: {error}"
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise BadInput(f"`reference` '{named}': '{file}' has no function '{name}'")
    return found  # type: ignore[no-any-return]
