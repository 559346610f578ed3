"""What is known to be true: planted sets, and the effect of every component alone."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Plan, Response
from broca.models import SHIPPED_MODELS, shipped_model_folder
from broca.results.files import write_beside
from broca.runs.workbench import Report
from broca.studies.methods.arena import Arena
from broca.studies.methods.cells import Cell

LEARNED = 0.5
"""Score on the intact model from which a capability of a planted model counts as learned: below it
the heads that were planted matter little, and are no ground truth (the model's card)."""

_SETS = "planted_heads.json"


@dataclass(frozen=True)
class Recovered:
    """How a selection compares with a planted set.

    Attributes:
        recall: Share of the planted heads that were selected.
        false: How many others were selected.
    """

    recall: float
    false: int


def planted_sets(model: str) -> dict[str, frozenset[str]]:
    """The planted heads of a shipped model by capability; empty where nothing was planted."""
    if model not in SHIPPED_MODELS:
        return {}
    path = shipped_model_folder(model) / _SETS
    if not path.is_file():
        return {}
    sets = json.loads(path.read_text(encoding="utf-8"))
    return {capability: frozenset(heads) for capability, heads in sets.items()}


def recovered(cell: Cell) -> Recovered | None:
    """Compares a cell's selection with the planted set of its capability.

    Returns:
        None where nothing is planted, where the model has not learned the task, or where the
        method did not run.
    """
    planted = planted_sets(cell.model).get(cell.capability)
    if not planted or not cell.done or cell.baseline < LEARNED:
        return None
    found = planted & set(cell.selected)
    return Recovered(len(found) / len(planted), len(set(cell.selected) - planted))


@dataclass(frozen=True)
class Exhaustive:
    """The effect of losing each component alone, measured on many items of a task.

    Attributes:
        fingerprint: Of the model.
        task: The task.
        response: What is measured.
        items: Number of items.
        names: Components, in the order of the columns.
        effects: Change of the mean response, `(components,)`.
    """

    fingerprint: str
    task: str
    response: str
    items: int
    names: tuple[str, ...]
    effects: tuple[float, ...]

    def worst(self, k: int) -> frozenset[str]:
        """The k components whose loss alone harms most; fewer where fewer harm."""
        order = np.argsort(np.array(self.effects), kind="stable")[:k]
        return frozenset(self.names[column] for column in order if self.effects[column] < 0)

    def held(self, cell: Cell) -> tuple[int, int]:
        """How many of a cell's intervals hold the effect, and how many intervals it has."""
        pairs = [
            (one, effect)
            for one, effect in zip(cell.intervals or (), self.effects, strict=False)
            if one is not None
        ]
        return sum(low <= effect <= high for (low, high), effect in pairs), len(pairs)


class ExhaustiveFolder:
    """Effects of single components, each task measured once and kept as a file.

    Args:
        folder: The out folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def measure(
        self,
        arena: Arena,
        tasks: Sequence[str],
        responses: Sequence[Response],
        *,
        items: int,
        on_progress: Report | None = None,
    ) -> None:
        """Measures what is not there yet.

        Args:
            arena: What is measured on.
            tasks: The tasks.
            responses: What to measure; a continuous one is left out where a task has no margin.
            items: Most items of a task, drawn from all of its items, whatever a seed cuts.
            on_progress: Receives what is going on.
        """
        report: Report = on_progress or (lambda stage, progress: None)
        for task in tasks:
            for response in responses:
                path = self._path(arena.model.fingerprint, task, response)
                if path.exists():
                    continue
                places = _usable(arena, task, response)
                if not places:
                    continue
                rng = np.random.default_rng([0xEC4A, zlib.crc32(task.encode())])
                drawn = np.sort(rng.permutation(places)[:items])
                report(f"every component alone on {task} ({response})", None)
                count = len(arena.model.components)
                masks = np.vstack([designs.intact(count), designs.singles(count)])
                means = arena.executor(response).run(Plan.crossed(masks, drawn)).mask_means()
                found = Exhaustive(
                    arena.model.fingerprint,
                    task,
                    response,
                    len(drawn),
                    tuple(arena.model.components.names),
                    tuple(round(float(one), 6) for one in means[1:] - means[0]),
                )
                write_beside(path, json.dumps(vars(found)) + "\n")

    def find(self, cell: Cell, response: str) -> Exhaustive | None:
        """The effects for a cell's task in a response; None where they were not measured.

        Raises:
            BadInput: The file holds something else.
        """
        path = self._path(cell.key.fingerprint, cell.key.task, response)
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return Exhaustive(
                **{**data, "names": tuple(data["names"]), "effects": tuple(data["effects"])}
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadInput(
                f"'{path}' holds no effects ({error}): delete it, and it is measured again"
            ) from error

    def _path(self, fingerprint: str, task: str, response: str) -> Path:
        safe = "".join(one if one.isalnum() or one in "-_" else "-" for one in task)
        return self._folder / f"exhaustive-{fingerprint[:12]}-{safe}-{response}.json"


def _usable(arena: Arena, task: str, response: Response) -> list[int]:
    places: list[int] = arena.places[task].tolist()
    known = arena.margins[task]
    if response == "accuracy":
        return places
    return [] if known is None else [place for place in places if place in known]


def top_recall(cell: Cell, exhaustive: Exhaustive | None) -> float | None:
    """Share of the exhaustive top k that a cell selected; None without one."""
    if exhaustive is None or not cell.done:
        return None
    top = exhaustive.worst(cell.key.k)
    return len(top & set(cell.selected)) / len(top) if top else None
