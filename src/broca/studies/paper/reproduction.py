"""`reproduce`: tables and figures of the paper on some models, in one call."""

from collections.abc import Sequence

from broca import searches
from broca.errors import BadInput, UnknownName, require_known
from broca.options import ReproduceOptions, flat, verb
from broca.results.runs import Reproduction
from broca.runs.progress import Stages
from broca.runs.session import open_run, open_workspace
from broca.runs.task_sets import listed
from broca.studies.paper import ALL, NAMES
from broca.studies.paper.experiments import EXPERIMENTS
from broca.studies.paper.study import Row, Study


@verb(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> tuple[Reproduction, ...]:
    """Repeats a table or figure of the paper, several or all of them.

    Models are loaded in turn, and their rows are concatenated. Searches and measurements that
    tables share are made once.

    Returns:
        A reproduction for each name. If several are requested, those that these models and tasks do
        not allow have no rows, and a note gives the reason.

    Raises:
        BrocaError: A name, task or model is unknown, or the tasks do not allow the only
            reproduction.
    """
    requested = _requested_names(options.name)
    searches.require_method(options.method)
    if requested == ("scale",) and len(options.model) < 2:
        raise BadInput("scale compares models: name two or more, such as reference-small reference")
    run_options = options.run_options
    stages = Stages(run_options.on_progress)
    rows: dict[str, list[Row]] = {name: [] for name in requested}
    notes: dict[str, list[str]] = {name: [] for name in requested}
    studied = []
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        within = run_options.within(space)
        for model in options.model:
            with open_run(model, within, stages, others=[options.tasks]) as opened:
                study = Study(opened, options)
                studied.append(study.model.name)
                for number, name in enumerate(requested, start=1):
                    stages.enter(f"{name} of {studied[-1]} ({number} of {len(requested)})")
                    general = len(study.notes)
                    try:
                        rows[name] += [
                            _published(row, studied[-1]) for row in EXPERIMENTS[name](study)
                        ]
                    except BadInput as error:
                        if len(requested) == 1:
                            raise
                        study.notes.append(str(error))
                    notes[name] += dict.fromkeys(study.notes)
                    del study.notes[general:]
                study.run.finish()
    if len(studied) < 2 and "scale" in requested:
        notes["scale"].append("one model shows no dependence on size: name several")
    tasks, source = options.tasks, run_options.source_options
    settings = {
        **flat(options.decisive(without=("name", "model", "tasks", "run_options"))),
        "tasks": tasks if isinstance(tasks, str) else [getattr(t, "name", t) for t in tasks],
        "include_path": source.include_path,
        "allow_code": source.allow_code,
    }
    return tuple(
        Reproduction(
            name, tuple(studied), tuple(rows[name]), settings, tuple(notes[name]), NAMES[name]
        )
        for name in requested
    )


def _published(row: Row, model: str) -> Row:
    """Returns a row with its model, without the figures that are not published."""
    return {"model": model, **{name: value for name, value in row.items() if value is not None}}


def _requested_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the distinct requested names.

    Raises:
        UnknownName: A name does not exist.
    """
    if names == ALL:
        return tuple(NAMES)
    for name in (requested := listed(names) or [""]):
        require_known("`name`", name, (*NAMES, ALL), error=UnknownName)
    return tuple(dict.fromkeys(requested))
