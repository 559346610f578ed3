"""`reproduce`: tables and figures of the paper on some models, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import MappingProxyType

from broca import searches
from broca.errors import BadInput, UnknownName, nearest
from broca.models import GatedModel, load
from broca.results.base import version_of_broca
from broca.runs.recording import Journaling, closes_journal
from broca.studies.paper import figures, tables
from broca.studies.paper.names import ALL, NAMES
from broca.studies.paper.record import Reproduction, Row
from broca.studies.paper.study import Settings, Study

EXPERIMENTS: MappingProxyType[str, Callable[[Study], list[Row]]] = MappingProxyType(
    {
        "table2": tables.top_heads,
        "table3": tables.same_skill,
        "table4": tables.methods,
        "table5": tables.universal_by_skill,
        "table6": tables.sweep,
        "table7": tables.universal_by_task,
        "table8": tables.shared_knowledge,
        "table9": tables.head_lists,
        "figure1": figures.radar,
        "figure2": figures.longer_sweep,
        "figure3": figures.shared_bars,
        "figure4": figures.own_bars,
        "gqa": tables.groups,
        "scale": tables.scale,
    }
)
"""What makes the rows of each name, for one model."""


def reproduce(
    name: str,
    models: str | GatedModel | Sequence[str | GatedModel],
    *,
    settings: Settings | None = None,
    dtype: str = "auto",
    device: str | None = None,
    allow_pickle: bool = False,
    report: Callable[[str], None] = lambda text: None,
) -> tuple[Reproduction, ...]:
    """Repeats a table or figure of the paper, or all of them.

    Models are loaded in turn; their rows stand below one another. What tables share is searched and
    measured once.

    Args:
        name: A key of `NAMES`, several joined by commas, or `all`.
        models: Shipped models, local folders, hub ids, or what `broca.load` returned.
        settings: What all tables share.
        dtype: Number format of the weights, if a model has yet to be loaded.
        device: Device, if a model has yet to be loaded.
        allow_pickle: Whether weights in pickle format may be loaded.
        report: Receives which stage is going on.

    Returns:
        One reproduction for each name. Of several, those that these models and tasks cannot show
        have no rows and a note that says why.

    Raises:
        BrocaError: An unknown name, task or model, or what the tasks cannot show.
    """
    names = _names(name)
    settings = settings or Settings()
    _require(settings)
    listed = [models] if isinstance(models, str | GatedModel) else list(models)
    if names == ("scale",) and len(listed) < 2:
        raise BadInput("scale compares models: name two or more, such as reference-small reference")

    def loaded(model: str | GatedModel) -> GatedModel:
        if isinstance(model, GatedModel):
            return model
        report(f"loading {model}")
        return load(model, dtype=dtype, device=device, allow_pickle=allow_pickle)

    return _reproduce(
        names, map(loaded, listed), settings, report, journal=Journaling(settings.journal)
    )


@closes_journal
def _reproduce(
    names: Sequence[str],
    models: Iterable[GatedModel],
    settings: Settings,
    report: Callable[[str], None],
    *,
    journal: Journaling,
) -> tuple[Reproduction, ...]:
    """Takes the models in turn, and keeps every row of all of them in one journal."""
    rows: dict[str, list[Row]] = {one: [] for one in names}
    notes: dict[str, list[str]] = {one: [] for one in names}
    called = []
    for model in models:
        called.append(model.name)
        study = Study(model, settings, report, journal)
        general, study.notes = study.notes, []
        for one in names:
            report(f"{one} of {model.name}")
            try:
                made = EXPERIMENTS[one](study)
            except BadInput as error:
                if len(names) == 1:
                    raise
                made = []
                study.notes.append(str(error))
            rows[one] += [{"model": model.name, **row} for row in made]
            notes[one] += dict.fromkeys((*general, *study.notes))
            study.notes = []
    if len(called) < 2 and "scale" in names:
        notes["scale"].append("one model shows no dependence on size: name several")
    asked = settings.to_dict()
    return tuple(
        Reproduction(
            one, tuple(called), tuple(rows[one]), asked, tuple(notes[one]), version_of_broca()
        )
        for one in names
    )


def stem_of(models: Sequence[str]) -> str:
    """What files of some models are called: their last names, joined."""
    return "+".join(Path(one).name or "model" for one in models)


def _names(name: str) -> tuple[str, ...]:
    """What is asked, each once.

    Raises:
        UnknownName: Nothing has such a name.
    """
    if name == ALL:
        return tuple(NAMES)
    names = tuple(dict.fromkeys(one.strip() for one in name.split(",")))
    for one in names:
        if one not in NAMES:
            raise UnknownName(
                f"'{one}' cannot be reproduced{nearest(one, [*NAMES, ALL])}; known are "
                f"{', '.join(NAMES)} and {ALL}"
            )
    return names


def _require(settings: Settings) -> None:
    """Refuses numbers that mean nothing, before a model is loaded."""
    searches.require_method(settings.method)
    least = {"rows": 1, "items": 1, "limit": 8, "k": 1}
    for name, fewest in least.items():
        value = getattr(settings, name)
        if value is not None and value < fewest:
            raise BadInput(f"--{name} must be at least {fewest}, not {value}")
