"""Values that a file omits because they stand in another place of the same file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from broca.results.upgrades import Data

KEYS_OF_LOCALIZATION: dict[str, tuple[str, ...]] = {
    "broca": ("broca",), "schema": ("schema",), "kind": (), "model": ("model",),
    "task": ("task",), "heads": ("selected",), "ablation": ("ablation",),
    "seed": ("search", "seed"), "rows": ("cost", "verification_rows"),
}  # fmt: skip
"""Keys that a verification within a localization omits, and their places in the localization."""

KEYS_OF_PARTS: dict[str, tuple[str, ...]] = {
    "AblationCheck": ("drop", "specific", "p"), "Carry": ("drop",), "Crossing": ("drop", "p"),
    "SelectedComponent": ("effect", "ci"), "UniversalComponent": ("effects",),
}  # fmt: skip
"""Keys that the parts of a file omit where their values stand in the file already."""


def omit(kind: str, data: Data) -> None:
    """Deletes the values that stand in another place of a file.

    Args:
        kind: Kind of the result, such as `atlas`.
        data: The complete content of its file, which is changed.
    """
    for part, values in list(_parts(kind, data)):
        for key, value in values.items():
            if key in part and part[key] == value:
                del part[key]


def complete(kind: str, data: Data) -> None:
    """Inserts the values that a file omits; values that it has, as in older files, stay.

    Args:
        kind: Kind of the result.
        data: The content of its file, which is changed.

    Raises:
        KeyError: The content lacks a key of its kind; other wrong parts raise TypeError and
            AttributeError.
    """
    for part, values in list(_parts(kind, data)):
        for key, value in values.items():
            part.setdefault(key, value)


def _parts(kind: str, data: Data) -> Iterator[tuple[Data, Data]]:
    """Yields the parts of a file that omit values, each with these values by key."""
    if kind in _PARTS:
        yield from _PARTS[kind](data)


def _of_localization(localization: Data) -> Iterator[tuple[Data, Data]]:
    verification = localization["verification"]
    values: Data = {
        key: reduce(lambda part, step: part[step], path, localization) if path else "verification"
        for key, path in KEYS_OF_LOCALIZATION.items()
    }
    yield verification, values
    yield from _of_verification({**values, **verification})


def _of_verification(verification: Data) -> Iterator[tuple[Data, Data]]:
    """A crossing of the verified set, and the check of its ablation, repeat a task's drop."""
    drops = {
        line["task"]: {"drop": _interval(line["drop"], line.get("ci")), "p": line.get("p")}
        for line in verification["drops"]
    }
    for crossing in verification.get("crossings", ()):
        if (crossing["found_on"], crossing["heads"]) == (
            verification["task"], verification["heads"],
        ):  # fmt: skip
            yield crossing, drops.get(crossing["measured_on"], {})
    specific = _interval(verification["specific_drop"], verification.get("specific_ci"))
    for check in verification.get("ablations", ()):
        if check["kind"] == verification["ablation"]["kind"]:
            yield check, {**drops.get(verification["task"], {}), "specific": specific}


def _of_atlas(atlas: Data) -> Iterator[tuple[Data, Data]]:
    """Selected and universal components repeat cells of the matrices."""
    cells = {
        (task["name"], name): (effect, [low, high])
        for task, *rows in zip(
            atlas["tasks"], atlas["effects"], atlas["low"], atlas["high"], strict=False
        )
        for name, effect, low, high in zip(atlas["components"], *rows, strict=False)
    }
    tasks = [task["name"] for task in atlas["tasks"]]
    for component in atlas["universal"]:
        effects = {task: cells.get((task, component["name"]), (None,))[0] for task in tasks}
        yield component, {"effects": effects}
    for selection in atlas["selections"]:
        for component in selection["components"]:
            cell = cells.get((selection["task"], component["name"]), ())
            yield component, dict(zip(("effect", "ci"), cell, strict=False))


def _of_comparison(comparison: Data) -> Iterator[tuple[Data, Data]]:
    """The test whether a selection carries repeats the drop of its score."""
    drops = {
        (line["model"], line["task"], line["selection"]): line.get("drop")
        for line in comparison["scores"]
    }
    for carry in comparison["carries"]:
        key = (carry["model"], carry["task"], carry["selection"])
        yield carry, {"drop": drops[key]} if key in drops else {}


def _interval(value: float | None, ends: Any) -> Data | None:
    if value is None or ends is None:
        return None
    return {"value": value, "low": ends[0], "high": ends[1]}


_PARTS: dict[str, Callable[[Data], Iterator[tuple[Data, Data]]]] = {
    "localization": _of_localization,
    "verification": _of_verification,
    "atlas": _of_atlas,
    "comparison": _of_comparison,
}
