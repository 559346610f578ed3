"""The request of a comparison: models, tasks and selections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from broca.errors import BadInput
from broca.known_paths import place_of
from broca.models import GatedModel, holds_model, require_readable
from broca.models.structure import head_counts, text_config
from broca.options import RunOptions
from broca.results.atlas import Atlas
from broca.results.base import ZEROED, AblationInfo, Result
from broca.results.comparison import ComparedSelection
from broca.results.localization import Localization
from broca.results.reading import read
from broca.tasks import RequestTokenizer, Task, Tasks, listed, require_context

Comparable = str | Path | GatedModel | Localization | Atlas
"""A model, its name, or a result or its folder, which mean their model and selections."""


@dataclass(frozen=True)
class ComparedSubject:
    """A compared model.

    Attributes:
        label: Label of the subject; labels are distinct.
        model: The model, or its name.
        revision: Revision on the hub.
        fingerprint: Digest of the weights of its result; empty without a result.
        tasks: Tasks of its result.
        selections: Task and names of the components of every selection of its result.
        seed: Seed of its result.
        task_options: Task options of its result.
        ablation: Ablation of its result.
        folder: Folder of its result, None if that is in memory.
    """

    label: str
    model: str | GatedModel
    revision: str | None = None
    fingerprint: str = ""
    tasks: tuple[str, ...] = ()
    selections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    seed: int | None = None
    task_options: dict[str, Any] = field(default_factory=dict)
    ablation: AblationInfo = ZEROED
    folder: Path | None = None

    @classmethod
    def of(cls, compared: Comparable | Result) -> ComparedSubject:
        """Returns the subject of a model, its name, a result or the folder of a result.

        Raises:
            BadInput: The result is neither a localization nor an atlas.
        """
        place = None
        if isinstance(compared, str | Path):
            place = place_of(compared)
            if not place.exists() or holds_model(place):
                return cls(str(compared), str(compared))
            compared = read(place)
        if isinstance(compared, GatedModel):
            return cls(compared.name, compared)
        if not isinstance(compared, Localization | Atlas):
            what = compared.described() if isinstance(compared, Result) else repr(compared)
            raise BadInput(f"{what} cannot be compared: give localizations, atlases or models")
        if isinstance(compared, Localization):
            sets, seed = {compared.task: compared.selected}, compared.search.seed
        else:
            sets = {task.name: compared.selected(task.name) for task in compared.tasks}
            seed = compared.seed
        model = compared.model
        return cls(
            model.name, model.name, model.revision, model.fingerprint, tuple(sets),
            tuple((task, names) for task, names in sets.items() if names), seed,
            compared.task_options, compared.ablation, place,
        )  # fmt: skip


def subjects_of(
    models: Sequence[Comparable], revisions: Sequence[str] = ()
) -> tuple[ComparedSubject, ...]:
    """Returns the subjects of a comparison; repeated labels are numbered from (2) on.

    Args:
        models: The models and results of the caller.
        revisions: Hub revisions of a single model.

    Raises:
        BadInput: There are fewer than two subjects, or revisions without a single hub id.
    """
    if revisions:
        if len(models) != 1 or not isinstance(models[0], str):
            raise BadInput("`revisions` is for one model on the hub: give its id alone")
        name = models[0]
        subjects = [
            ComparedSubject(f"{name}@{revision}", name, revision=revision) for revision in revisions
        ]
    else:
        subjects = [ComparedSubject.of(model) for model in models]
    if len(subjects) < 2:
        raise BadInput(
            f"`models` names {len(subjects)}: a comparison needs two models or runs, or `revisions`"
        )
    labels = _numbered([subject.label for subject in subjects])
    return tuple(
        replace(subject, label=label) for subject, label in zip(subjects, labels, strict=True)
    )


def merged(subjects: Sequence[ComparedSubject]) -> tuple[ComparedSubject, ...]:
    """Joins the selections of one model and of results on its weights, which are measured once."""
    joined: dict[Any, ComparedSubject] = {}
    results = {(one.model, one.revision): one.fingerprint for one in subjects if one.fingerprint}
    for subject in subjects:
        place = (subject.model, subject.revision)
        weights = subject.fingerprint or results.get(place, "")
        first = joined.setdefault(weights or place, subject)
        if first is not subject:
            both = first.selections + subject.selections
            joined[weights or place] = replace(first, selections=both, fingerprint=weights)
    return tuple(joined.values())


def require_comparable(subjects: Sequence[ComparedSubject], options: RunOptions) -> None:
    """Refuses models that cannot be read or are of several architectures, before one is loaded.

    Raises:
        BrocaError: The message names the model.
    """
    first = ""
    for subject in subjects:
        model_options = replace(options.model_options, revision=subject.revision)
        kinds, model = model_options.components, subject.model
        if isinstance(model, GatedModel):
            kinds, config, tokenizer = model.kinds, model.model.config, model.tokenizer
        else:
            checkpoint, tokenizer = require_readable(model, model_options)
            config = checkpoint.config
        require_context(config, options.task_options)
        if options.task_options.chat_template:
            RequestTokenizer(tokenizer, max_length=2).require_chat_template()
        text = text_config(config)
        counts = head_counts(text)
        shape = f"{text.model_type} of {len(counts)} layers"
        if "heads" in kinds.split("+"):
            several = dict.fromkeys(counts)
            shape += f" with {' or '.join(str(count or 'no') for count in several)} heads"
        first = first or shape
        if shape != first:
            raise BadInput(
                f"'{subject.label}' is a {shape}, and the first model a {first}: only models of "
                "one architecture can be compared"
            )


def _numbered(labels: Sequence[str]) -> list[str]:
    """Returns labels of which repeated ones are numbered from (2) on."""
    counts: Counter[str] = Counter()
    numbered = []
    for label in labels:
        counts[label] += 1
        numbered.append(f"{label} ({counts[label]})" if counts[label] > 1 else label)
    return numbered


def tasks_of(subjects: Sequence[ComparedSubject], tasks: Tasks = ()) -> tuple[str | Task, ...]:
    """Returns the distinct tasks: the given ones, else those of the runs or of all atlases.

    Raises:
        BadInput: There are no tasks.
    """
    if tasks:
        return tuple(dict.fromkeys(listed(tasks)))
    of_results = [subject.tasks for subject in subjects if subject.tasks]
    names = tuple(dict.fromkeys(name for tasks in of_results for name in tasks))
    if any(len(tasks) > 1 for tasks in of_results):
        names = tuple(name for name in names if all(name in tasks for tasks in of_results))
    if not names:
        raise BadInput("no task is named: give `tasks`, or runs or atlases that have some")
    return names


def seed_of(subjects: Sequence[ComparedSubject], seed: int | None) -> int:
    """Returns the given seed, else that of the first result, else 0."""
    if seed is not None:
        return seed
    return next((subject.seed for subject in subjects if subject.seed is not None), 0)


def selections_of(
    subjects: Sequence[ComparedSubject], heads: str | Sequence[str] = ()
) -> tuple[ComparedSelection, ...]:
    """Returns the results' selections and the caller's components, with labels.

    Args:
        subjects: The models with their results.
        heads: Names of components, or names joined by `+`.
    """
    found = [
        (subject.label, *selection) for subject in subjects for selection in subject.selections
    ]
    labels = [task if len(subjects) == 1 else f"{label}, {task}" for label, task, _ in found]
    selections = [
        ComparedSelection(name, label, task, names)
        for name, (label, task, names) in zip(_numbered(labels), found, strict=True)
    ]
    if heads:
        words = heads.split("+") if isinstance(heads, str) else heads
        names = tuple(dict.fromkeys(filter(None, (str(word).strip() for word in words))))
        selections.append(ComparedSelection("given", None, None, names))
    return tuple(selections)
