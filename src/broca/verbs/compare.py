"""`compare`: what differs between models, or runs, on the same masks and items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broca.comparisons import (
    Design,
    Estimates,
    Measured,
    carries,
    discoveries,
    draw_design,
    estimate,
    measure,
    row_count,
    scores,
)
from broca.engine import Ablation
from broca.errors import BadInput
from broca.measurement import Response
from broca.models import GatedModel
from broca.options import CompareRunOptions, takes_options
from broca.results.atlas import Atlas
from broca.results.base import AblationInfo
from broca.results.comparison import (
    ComparedModel,
    ComparedSelection,
    Comparison,
    TaskDifferences,
    TaskEffects,
)
from broca.results.localization import Localization
from broca.results.reading import read
from broca.runs.progress import Report
from broca.runs.references import Referenced
from broca.runs.run import Run
from broca.runs.setup import ablation_of, open_session, open_workspace
from broca.runs.task_sets import TaskSet, listed, load_tasks, split_tasks
from broca.tasks import Task

Compared = str | Path | GatedModel | Localization | Atlas
"""A model, its name, or a result or its folder, which stand for their model and selections."""


@takes_options
def compare(
    *models: Compared,
    tasks: str | Sequence[str | Task] = (),
    heads: str | Sequence[str] = (),
    revisions: Sequence[str] = (),
    rows: int | None = None,
    items: int = 100,
    limit: int | None = None,
    response: str | None = None,
    level: float = 0.05,
    seed: int | None = None,
    on_progress: Report | None = None,
    run_options: CompareRunOptions,
) -> Comparison:
    """Compares models of one architecture, component by component, and what runs selected in them.

    Every model answers the same rows: random masks on the same items. The effects of components,
    and their differences from the first model, come from one regression with errors between items;
    which components changed is decided at a rate of false discoveries. Every selection is ablated
    in every model on items that no search saw.

    Args:
        models: Models (names, folders, hub ids or what `broca.load` returned), localizations,
            atlases or their folders; the first is the reference. One alone needs `revisions`.
        tasks: The tasks; by default those that the runs localized, or that all atlases have.
        heads: Components to ablate together in every model, beside the runs' selections.
        revisions: Revisions on the hub of a model that is given alone, in their order.
        rows: Rows with random masks for each model and task; by default six for each component,
            at least 1,000.
        items: Most items of a task for these rows.
        limit: Most report items of a task, which scores are of; all by default.
        response: What these rows return: by default `probability`, or `accuracy` where right
            answers are each model's own.
        level: Level of tests and intervals, and the rate of false discoveries.
        seed: Seed of everything random; by default the first run's, whose items it keeps apart.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    subjects = _subjects(models, revisions)
    names = _tasks(subjects, tasks)
    if seed is None:
        seed = next((subject.seed for subject in subjects if subject.seed is not None), 0)
    ablation = ablation_of(run_options.ablation_options, seed)
    found = _Found()
    with open_workspace(run_options.journal_options, run_options.executor_options) as space:
        for subject in subjects:
            model_options = replace(run_options.model_options, revision=subject.revision)
            options = replace(run_options.within(space), model_options=model_options)
            with open_session(subject.model, options, on_progress) as opened:
                subject.require_weights(opened.model)
                found.require_components(opened.model, subject.label)
                selections = _selections(subjects, heads)
                opened.stages.enter(f"building the tasks of {subject.label}")
                benchmarks = load_tasks(
                    opened.model, opened.catalog.names_of(names), opened.catalog,
                    options=options.task_options,
                )  # fmt: skip
                run = opened.run(
                    split_tasks(benchmarks, items=items, seed=seed, limit=limit),
                    ablation=ablation,
                    settings={
                        "verb": "compare", "tasks": list(benchmarks), "rows": rows, "items": items,
                        "limit": limit, "response": response, "seed": seed,
                        "ablation": [ablation.kind, ablation.scale],
                        "components": opened.model.kinds,
                        "selections": [list(one.components) for one in selections],
                        "task_options": options.task_options.to_dict(),
                    },
                )  # fmt: skip
                found.measure(run, subject.label, selections, rows, seed, response)
    return found.compared(subjects, ablation, level=level, seed=seed)


@dataclass(frozen=True)
class _Subject:
    """One of the models.

    Attributes:
        label: What it is called.
        model: The model, or its name.
        revision: Its revision.
        fingerprint: Digest of the weights that the selections were found in; empty without.
        tasks: Tasks that its result is of.
        selections: What was selected for them, by task.
        seed: Seed of its result.
    """

    label: str
    model: str | GatedModel
    revision: str | None = None
    fingerprint: str = ""
    tasks: tuple[str, ...] = ()
    selections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    seed: int | None = None

    def require_weights(self, model: GatedModel) -> None:
        """Refuses other weights than those of the result.

        Raises:
            BadInput: They are others.
        """
        if self.fingerprint and model.fingerprint != self.fingerprint:
            raise BadInput(
                f"the weights of '{model.name}' are not those of the result '{self.label}' "
                f"(fingerprint {model.fingerprint}, not {self.fingerprint}): check `dtype` and "
                "the model"
            )


def _subjects(models: Sequence[Compared], revisions: Sequence[str]) -> tuple[_Subject, ...]:
    """What is compared, each with a label of its own.

    Raises:
        BadInput: There are fewer than two.
    """
    if revisions:
        if len(models) != 1 or not isinstance(models[0], str):
            raise BadInput("`revisions` are those of one model on the hub: give its id alone")
        name = models[0]
        found = [_Subject(f"{name}@{one}", name, revision=one) for one in revisions]
    else:
        found = [_subject(model) for model in models]
    if len(found) < 2:
        raise BadInput(
            f"`models` names {len(found)}: a comparison needs two models or runs, or `revisions`"
        )
    labels: dict[str, int] = {}
    named = []
    for subject in found:
        labels[subject.label] = labels.get(subject.label, 0) + 1
        number = labels[subject.label]
        named.append(
            subject if number == 1 else replace(subject, label=f"{subject.label} ({number})")
        )
    return tuple(named)


def _subject(given: Compared) -> _Subject:
    if isinstance(given, str | Path):
        place = Path(given).expanduser()
        if not place.exists() or (place / "config.json").is_file():
            return _Subject(str(given), str(given))
        result = read(place)
        if not isinstance(result, Localization | Atlas):
            raise BadInput(
                f"{result.described()} cannot be compared: give localizations, atlases or models"
            )
        given = result
    if isinstance(given, GatedModel):
        return _Subject(given.name, given)
    model = given.model
    if isinstance(given, Localization):
        return _Subject(
            model.name, model.name, model.revision, model.fingerprint, (given.task,),
            ((given.task, given.selected),) if given.selected else (), given.search.seed,
        )  # fmt: skip
    chosen = tuple(
        (one.task, tuple(component.name for component in one.components))
        for one in given.selections
        if one.components
    )
    tasks = tuple(task.name for task in given.tasks)
    return _Subject(
        model.name, model.name, model.revision, model.fingerprint, tasks, chosen, given.seed
    )


def _tasks(
    subjects: Sequence[_Subject], tasks: str | Sequence[str | Task]
) -> tuple[str | Task, ...]:
    """The tasks, each once: those given, else the runs' own, or what all atlases have.

    Raises:
        BadInput: There are none.
    """
    if tasks:
        given = listed(tasks) if isinstance(tasks, str) else tasks
        return tuple(dict.fromkeys(given))
    known = [subject.tasks for subject in subjects if subject.tasks]
    if any(len(names) > 1 for names in known):
        names = tuple(name for name in known[0] if all(name in others for others in known))
    else:
        names = tuple(dict.fromkeys(name for own in known for name in own))
    if not names:
        raise BadInput("no task is named: give `tasks`, or runs or atlases that have some")
    return names


def _selections(
    subjects: Sequence[_Subject], heads: str | Sequence[str]
) -> tuple[ComparedSelection, ...]:
    """The runs' selections and what the caller named, each with a label."""
    found = [
        ComparedSelection(f"{subject.label}, {task}", subject.label, task, names)
        for subject in subjects
        for task, names in subject.selections
    ]
    if heads:
        words = heads.split("+") if isinstance(heads, str) else heads
        names = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
        found.append(ComparedSelection("given", None, None, names))
    return tuple(found)


@dataclass
class _Found:
    """What was measured, model by model.

    Attributes:
        components: Names of the components; those of the first model.
        models: Label and measurements of every model.
        selections: What was ablated as a whole.
        design: The rows, drawn on the first model.
        response: What they return.
        rows: How many for each task.
        tasks: The tasks as the first model is asked them.
        notes: What the reader should know.
    """

    components: tuple[str, ...] = ()
    models: list[tuple[str, Measured]] = field(default_factory=list)
    selections: tuple[ComparedSelection, ...] = ()
    design: Design | None = None
    response: Response = "accuracy"
    rows: int = 0
    tasks: TaskSet = field(default_factory=TaskSet)
    notes: list[str] = field(default_factory=list)

    def require_components(self, model: GatedModel, label: str) -> None:
        """Refuses a model of another architecture.

        Raises:
            BadInput: Its components have other names.
        """
        names = model.components.names
        if self.components and names != self.components:
            raise BadInput(
                f"'{label}' has {len(names)} components from {names[0]} to {names[-1]}, and the "
                f"first model {len(self.components)} to {self.components[-1]}: only models of one "
                "architecture can be compared"
            )
        self.components = names

    def measure(
        self,
        run: Run,
        label: str,
        selections: tuple[ComparedSelection, ...],
        rows: int | None,
        seed: int,
        response: str | None,
    ) -> None:
        """Measures one model; the first decides the rows.

        Raises:
            BadInput: Its tasks have other items than the first model's.
        """
        run.stages.enter(f"scoring {label}")
        referenced = self._referenced(run, response)
        if self.design is None:
            self.rows = row_count(rows, len(self.components))
            self.response, self.selections = referenced.response, selections
            self.tasks = run.tasks
            self.design = draw_design(
                run, rows=self.rows, seed=seed, response=self.response, places=referenced.places
            )
            self.notes += referenced.notes
        for name, positions in referenced.places.items():
            if self.design.items[name].max() >= len(positions):
                raise BadInput(
                    f"task '{name}' has {len(positions)} items for '{label}' and more for the "
                    "first model: only the same items can be compared; use `response` accuracy"
                )
        run.stages.enter(f"measuring {label} under random masks")
        measured = measure(
            run, self.design, [one.components for one in selections],
            response=self.response, places=referenced.places,
        )  # fmt: skip
        run.finish()
        self.notes += [
            f"{label} is at chance on {name}: it can show no damage there"
            for name in measured.at_chance
        ]
        self.models.append((label, measured))

    def _referenced(self, run: Run, response: str | None) -> Referenced:
        """What rows return; a model's own answers are no measure that models share.

        Raises:
            BadInput: They are asked for.
        """
        own = [name for name, one in run.tasks.benchmarks.items() if one.wants_own_answers]
        if own and response not in (None, "accuracy"):
            raise BadInput(
                f"`response` {response} of '{own[0]}' would compare each model with its own "
                "answers: use accuracy, or `reference` gold"
            )
        wanted = response or ("accuracy" if own else "probability")
        return run.referenced(
            wanted,  # type: ignore[arg-type]  # checked by the options
            run.tasks.places["locate"],
            otherwise="all tasks are measured in their own metrics" if response is None else None,
        )

    def _differences(
        self, label: str, task: str, change: Estimates, level: float
    ) -> TaskDifferences:
        """How one model differs from the first on one task."""
        low, high = change.intervals(level)
        p = change.p_values()
        q = discoveries(p)
        changed = sorted(np.flatnonzero(q <= level), key=lambda column: -abs(change.values[column]))
        return TaskDifferences(
            label, task, _plain(change.values), _plain(low), _plain(high), _plain(p), _plain(q),
            tuple(self.components[column] for column in changed),
        )  # fmt: skip

    def compared(
        self, subjects: Sequence[_Subject], ablation: Ablation, *, level: float, seed: int
    ) -> Comparison:
        """The result."""
        assert self.design is not None
        first_label, first = self.models[0]
        effects, differences = [], []
        for label, measured in self.models:
            for task, changes in measured.changes.items():
                items = self.design.items[task]
                found = estimate(self.design.masks, changes, items)
                low, high = found.intervals(level)
                effects.append(
                    TaskEffects(label, task, _plain(found.values), _plain(low), _plain(high))
                )
                if label != first_label:
                    change = estimate(self.design.masks, changes - first.changes[task], items)
                    differences.append(self._differences(label, task, change, level))
        infos = dict(self.models)
        return Comparison(
            models=tuple(
                ComparedModel(one.label, infos[one.label].info, one.revision) for one in subjects
            ),
            tasks=tuple(first.changes),
            components=self.components,
            ablation=AblationInfo(ablation.kind, ablation.scale),
            response=self.response,
            seed=seed,
            level=level,
            rows=self.rows,
            items={name: int(of.max()) + 1 for name, of in self.design.items.items()},
            report_items={name: len(of) for name, of in self.tasks.places["report"].items()},
            mask_size=self.design.size,
            effects=tuple(effects),
            differences=tuple(differences),
            selections=self.selections,
            scores=tuple(
                line
                for label, measured in self.models
                for line in scores(label, measured, self.selections, level=level, seed=seed)
            ),
            carries=carries(self.models, self.selections, level=level, seed=seed),
            notes=tuple(dict.fromkeys(self.notes)),
        )


def _plain(vector: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(value) for value in vector)
