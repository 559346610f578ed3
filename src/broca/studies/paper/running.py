"""`reproduce`: tables and figures of the paper on some models, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from broca import searches
from broca.errors import BadInput, UnknownName, nearest
from broca.models import GatedModel
from broca.options import PaperRunOptions, SearchOptions, SourceOptions, takes_options, without
from broca.results import Reproduction
from broca.runs import Stages, Step, open_session, open_workspace
from broca.studies.paper import figure_rows, table_rows
from broca.studies.paper.names import ALL, NAMES
from broca.studies.paper.rehearsal import experiment_stage, study_steps
from broca.studies.paper.reproduction import Row
from broca.studies.paper.study import PAPER_METHOD, Study, StudySettings
from broca.tasks import Task

EXPERIMENTS: MappingProxyType[str, Callable[[Study], list[Row]]] = MappingProxyType(
    {
        "table2": table_rows.top_heads,
        "table3": table_rows.same_skill,
        "table4": table_rows.methods,
        "table5": table_rows.universal_by_skill,
        "table6": table_rows.sweep,
        "table7": table_rows.universal_by_task,
        "table8": table_rows.shared_knowledge,
        "table9": table_rows.head_lists,
        "figure1": figure_rows.radar,
        "figure2": figure_rows.longer_sweep,
        "figure3": figure_rows.shared_bars,
        "figure4": figure_rows.own_bars,
        "gqa": table_rows.groups,
        "scale": table_rows.scale,
    }
)
"""The functions that make the rows of each name, for a model."""


@takes_options
def reproduce(
    names: str | Sequence[str],
    models: str | GatedModel | Sequence[str | GatedModel],
    *,
    tasks: str | Sequence[str | Task] = "auto",
    method: str = PAPER_METHOD,
    limit: int | None = None,
    keep_universal: bool = False,
    seed: int = 0,
    search_options: Annotated[
        SearchOptions, without("method", "response", "options", "max_minutes")
    ],
    run_options: PaperRunOptions,
) -> tuple[Reproduction, ...]:
    """Repeats a table or figure of the paper, or all of them.

    Models are loaded in turn, and their rows are concatenated. Searches and measurements that
    tables share are made once.

    Args:
        names: Keys of `NAMES`, as a list or joined by commas, or `all`.
        models: A model or several: shipped ones, local folders, hub ids, or what `broca.load`
            returned.
        tasks: Tasks to measure, as a list or joined by commas; `auto`: all shipped ones for a
            shipped model, else all of `include_path`, else the paper's.
        method: Search method of every list of heads; the paper's by default.
        rows: Maximum number of rows of each search; by default the method's own budget.
        items: Maximum number of items of each search.
        limit: Maximum number of report items of each task.
        k: Number of heads of each list.
        keep_universal: Whether lists keep universal heads, which the paper filters out.
        seed: Seed of all random draws.

    Returns:
        A reproduction for each name. If several are requested, those that these models and tasks do
        not allow have no rows, and a note gives the reason.

    Raises:
        BrocaError: A name, task or model is unknown, or the tasks do not allow the only
            reproduction.
    """
    requested = _requested_names(names)
    searches.require_method(method)
    if limit is not None and limit < 8:
        raise BadInput(f"`limit` must be at least 8, not {limit}")
    listed_models = [models] if isinstance(models, str | GatedModel) else list(models)
    if requested == ("scale",) and len(listed_models) < 2:
        raise BadInput("scale compares models: name two or more, such as reference-small reference")
    settings = StudySettings(
        tasks, limit, keep_universal, seed, replace(search_options, method=method),
    )  # fmt: skip
    stages = Stages(run_options.on_progress)
    rows: dict[str, list[Row]] = {name: [] for name in requested}
    notes: dict[str, list[str]] = {name: [] for name in requested}
    studied = []
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        for number, model in enumerate(listed_models):
            with open_session(model, run_options.within(space), stages, others=[tasks]) as opened:
                studied.append(opened.model.name)
                study = Study(opened, settings)
                steps = study_steps(study, {name: EXPERIMENTS[name] for name in requested})
                stages.expect(steps, instead_of=_later(number) if number else "")
                if number == 0:
                    rows_of_model = sum(step.rows for step in steps)
                    stages.expect(
                        [
                            Step(_later(later), rows_of_model, verb=True)
                            for later in range(1, len(listed_models))
                        ]
                    )
                for name in requested:
                    stages.enter(experiment_stage(name, study))
                    new_rows, new_notes = _experiment(name, study, alone=len(requested) == 1)
                    stages.complete(experiment_stage(name, study))
                    rows[name] += [{"model": study.model.name, **row} for row in new_rows]
                    notes[name] += new_notes
                study.run.finish()
    if len(studied) < 2 and "scale" in requested:
        notes["scale"].append("one model shows no dependence on size: name several")
    record = _as_record(settings, run_options.source_options)
    return tuple(
        Reproduction(
            name, tuple(studied), tuple(rows[name]), record, tuple(notes[name]), NAMES[name]
        )
        for name in requested
    )


def _experiment(name: str, study: Study, *, alone: bool) -> tuple[list[Row], list[str]]:
    """Makes the rows of a table or figure on a model, and notes for the reader.

    Rows leave out the figures that are not published.

    Raises:
        BadInput: The tasks do not allow it, and nothing else was requested.
    """
    general = len(study.notes)
    try:
        rows = [
            {column: value for column, value in row.items() if value is not None}
            for row in EXPERIMENTS[name](study)
        ]
    except BadInput as error:
        if alone:
            raise
        rows = []
        study.notes.append(str(error))
    notes = list(dict.fromkeys(study.notes))
    del study.notes[general:]
    return rows, notes


def _later(number: int) -> str:
    """Returns the stage of a model that is not loaded yet."""
    return f"model {number}"


def _as_record(settings: StudySettings, source: SourceOptions) -> Row:
    """Returns the settings as plain values."""
    tasks, path = settings.tasks, source.include_path
    if not isinstance(tasks, str):
        tasks = [task if isinstance(task, str) else task.name for task in tasks]
    return {
        "tasks": tasks,
        "include_path": None if path is None else str(path),
        "method": settings.method,
        "rows": settings.search.rows,
        "items": settings.search.items,
        "limit": settings.limit,
        "k": settings.search.k,
        "keep_universal": settings.keep_universal,
        "allow_code": source.allow_code,
        "seed": settings.seed,
    }


def stem_of(models: Sequence[str]) -> str:
    """Returns the stem of files of some models: the last parts of their names, joined."""
    return "+".join(Path(model).name or "model" for model in models)


def _requested_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the distinct requested names.

    Raises:
        UnknownName: A name does not exist.
    """
    if names == ALL:
        return tuple(NAMES)
    words = names.split(",") if isinstance(names, str) else names
    requested = tuple(dict.fromkeys(word.strip() for word in words))
    for name in requested:
        if name not in NAMES:
            raise UnknownName(
                f"'{name}' cannot be reproduced{nearest(name, [*NAMES, ALL])}; known are "
                f"{', '.join(NAMES)} and {ALL}"
            )
    return requested
