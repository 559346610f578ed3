"""The tasks of a run: which are meant, how they are loaded, where their items lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, NothingToLocalize
from broca.models import SHIPPED_MODELS, GatedModel
from broca.results.verification import Documents
from broca.tasks import (
    Benchmark,
    Catalog,
    Item,
    RequestTokenizer,
    Split,
    Task,
    TaskOptions,
)
from broca.tasks.paper import PAPER_GROUPS
from broca.verification import Trial, roles

Bank = list[tuple[Benchmark, Item]]
"""The items that plans refer to by position."""

Part = Literal["report", "locate", "confirm"]
Places = dict[str, NDArray[np.intp]]
"""Positions in the bank, by task."""

NEAR_CHANCE = 0.15
"""Score above chance below which a task has little to lose."""


@dataclass(frozen=True, eq=False)
class TaskSet:
    """The tasks of a run, with the items that it needs of each; without arguments there are none.

    Attributes:
        task: The task that the run is about; empty where all tasks are alike.
        same_skill: Other tasks of its capability.
        others: The tasks that should not suffer.
        benchmarks: All tasks by name.
        bank: Their items.
        places: For each part of the items, the positions of each task's in the bank.
        notes: What the reader should know of the choice of tasks.
    """

    task: str = ""
    same_skill: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    benchmarks: Mapping[str, Benchmark] = field(default_factory=dict)
    bank: Bank = field(default_factory=list)
    places: Mapping[Part, Places] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def trial(self, part: Part = "report") -> Trial:
        """The tasks with a part of their items."""
        items = [item for _, item in self.bank]
        return Trial(
            self.task, self.same_skill, self.others, self.benchmarks, self.places[part], items
        )

    @property
    def located(self) -> list[int]:
        """Positions of the task's `locate` items."""
        return [int(position) for position in self.places["locate"][self.task]]

    def scored_tokens(self, positions: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
        """Tokens that the task scores of some items, prompt and continuation.

        Args:
            positions: Of the items in the bank.

        Returns:
            For every request its item's position and its tokens; equal ones of an item once. Those
            of a generation are its prompt alone: what is written after it differs from mask to
            mask.
        """
        return [
            (position, tokens)
            for position in positions
            for tokens in dict.fromkeys(
                (*request.context, *request.continuation)
                for request in self.bank[position][1].requests
            )
        ]

    @property
    def documents(self) -> tuple[Documents, ...]:
        """Which documents each part of the items holds."""
        found: dict[tuple[str, str, str, str], list[int]] = {}
        for part, by_task in self.places.items():
            for name, positions in by_task.items():
                for position in positions.tolist():
                    benchmark, item = self.bank[position]
                    member, split, place = benchmark.document_place(item)
                    found.setdefault((name, part, member, split), []).append(place)
        return tuple(Documents(*key, tuple(places)) for key, places in found.items())

    def notes_of(self, name: str) -> tuple[str, ...]:
        """What the reader should know of a task and its items."""
        benchmark = self.benchmarks[name]
        notes = tuple(benchmark.notes)
        if not benchmark.cut_items:
            return notes
        return (
            *notes,
            f"{benchmark.cut_items} of {len(benchmark.items)} prompts of {name} were cut from the "
            "left to fit the model's context",
        )


def claim_tasks(
    task: str,
    benchmarks: Mapping[str, Benchmark],
    *,
    same_skill: Sequence[str] = (),
    items: int,
    seed: int,
    limit: int | None = None,
    report_items: int | None = None,
    searched: Literal["task", "all"] = "all",
) -> TaskSet:
    """Cuts the items of the tasks of a claim by seed.

    Args:
        task: The claimed task.
        benchmarks: It and the other tasks, by name.
        same_skill: Tasks of its capability; those whose metadata say so are added.
        items: Most `locate` and `confirm` items of each task.
        seed: Seed of the cut.
        limit: Most `report` items of each task; all by default.
        report_items: Most `report` items of the task and of each of its skill, and as many of all
            others together, evenly from those that `limit` leaves; all by default.
        searched: Whether a search may ask `locate` and `confirm` items of all tasks but those of
            the same skill, or the task's `locate` items are all that is needed.
    """
    same, others = roles(task, benchmarks, same_skill)
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    if limit is not None:
        splits = {
            name: Split(split.locate, split.confirm, split.report[:limit])
            for name, split in splits.items()
        }
    if report_items is not None:
        reported = {name: np.array(split.report, dtype=np.intp) for name, split in splits.items()}
        fewer = Trial(task, same, others, benchmarks, reported).smaller(report_items)
        splits = {
            name: replace(split, report=tuple(fewer[name].tolist()))
            for name, split in splits.items()
        }
    parts: dict[Part, Sequence[str]] = {"report": tuple(benchmarks)}
    if searched == "all":
        parts |= {"locate": (task, *others), "confirm": (task, *others)}
    else:
        parts |= {"locate": (task,)}
    bank, places = lay_out(benchmarks, splits, parts)
    return TaskSet(task, same, others, benchmarks, bank, places)


def equal_tasks(benchmarks: Mapping[str, Benchmark], *, items: int, seed: int) -> TaskSet:
    """Cuts the items of tasks that are all alike: their `locate` items."""
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    bank, places = lay_out(benchmarks, splits, {"locate": tuple(benchmarks)})
    return TaskSet("", (), tuple(benchmarks), benchmarks, bank, places)


def split_tasks(
    benchmarks: Mapping[str, Benchmark], *, items: int, seed: int, limit: int | None = None
) -> TaskSet:
    """Cuts the items of tasks that are all alike: their `locate` and their `report` items.

    Args:
        benchmarks: The tasks by name.
        items: Most `locate` items of each.
        seed: Seed of the cut.
        limit: Most `report` items of each; all by default.
    """
    splits = {name: one.split(items=items, seed=seed) for name, one in benchmarks.items()}
    splits = {name: replace(split, report=split.report[:limit]) for name, split in splits.items()}
    parts: dict[Part, Sequence[str]] = {"locate": tuple(benchmarks), "report": tuple(benchmarks)}
    bank, places = lay_out(benchmarks, splits, parts)
    return TaskSet("", (), tuple(benchmarks), benchmarks, bank, places)


def whole_tasks(benchmarks: Mapping[str, Benchmark]) -> TaskSet:
    """Lays out every item of tasks that are all alike, uncut: all are `report` items."""
    splits = {name: Split((), (), tuple(range(len(one.items)))) for name, one in benchmarks.items()}
    bank, places = lay_out(benchmarks, splits, {"report": tuple(benchmarks)})
    return TaskSet("", (), tuple(benchmarks), benchmarks, bank, places)


MOST_OTHERS = 8
"""Tasks of a folder that `auto` takes as others."""


def other_tasks(
    task: str, others: str | Sequence[str | Task], model: GatedModel, catalog: Catalog
) -> tuple[str, ...]:
    """Resolves `others` to task names, the task itself excluded.

    Args:
        task: The task; empty where all tasks are meant.
        others: Tasks, or one string of names joined by commas. `auto`: none for a task of one's
            own examples; else all shipped tasks for a shipped model, else those of the catalog's
            folder, without the task, of which it takes `MOST_OTHERS` at even steps through their
            names where there are more (`sampling_note` says so). `general` stands for the four
            tasks of the paper's group, without the task where it is one of them.
        model: The model.
        catalog: The tasks that can be named.

    Raises:
        BadInput: The task itself is named.
    """
    if others == "auto":
        names = () if task and catalog.is_own(task) else auto_tasks(model, catalog)
        if task and model.source not in SHIPPED_MODELS:
            names = _evenly(tuple(name for name in names if name != task))
    else:
        names = tuple(listed(others) if isinstance(others, str) else catalog.names_of(others))
        if task in names:
            raise BadInput(
                f"task '{task}' is also named in `others`: a task is not a control of itself"
            )
    members = [member for name in names for member in PAPER_GROUPS.get(name, (name,))]
    return tuple(dict.fromkeys(name for name in members if name != task))


def _evenly(names: tuple[str, ...]) -> tuple[str, ...]:
    """At most `MOST_OTHERS` of some names, at even steps."""
    if len(names) <= MOST_OTHERS:
        return names
    return tuple(names[place * len(names) // MOST_OTHERS] for place in range(MOST_OTHERS))


def sampling_note(
    task: str, others: str | Sequence[str | Task], taken: Sequence[str], catalog: Catalog
) -> tuple[str, ...]:
    """Says which tasks `auto` took, where it did not take all.

    Args:
        task: The task.
        others: What was given as `others`.
        taken: What `other_tasks` made of it.
        catalog: The tasks that can be named.
    """
    there = [name for name in catalog.included if name != task]
    if others != "auto" or len(taken) != MOST_OTHERS or len(there) <= MOST_OTHERS:
        return ()
    return (
        f"the other tasks are {len(taken)} of the {len(there)} in the folder, at even steps "
        f"through their names ({', '.join(taken)}): `others` names more",
    )


def auto_tasks(model: GatedModel, catalog: Catalog) -> tuple[str, ...]:
    """The tasks that `auto` stands for: the shipped ones for a shipped model, else the folder's."""
    return tuple(catalog.shipped if model.source in SHIPPED_MODELS else catalog.included)


def compared_tasks(
    tasks: str | Sequence[str | Task], model: GatedModel, catalog: Catalog
) -> tuple[str, ...]:
    """The tasks that an atlas compares, each once; all shipped ones for `auto`.

    Raises:
        BadInput: There are fewer than two, or one is unknown.
    """
    if tasks == "auto":
        names = auto_tasks(model, catalog)
        if len(names) < 2:
            raise BadInput(
                f"an atlas compares tasks, and there are {len(names)} for this model: name two or "
                "more in `tasks`, or give `include_path`"
            )
        return names
    given = listed(tasks) if isinstance(tasks, str) else tasks
    names = tuple(dict.fromkeys(catalog.names_of(given)))
    if len(names) < 2:
        raise BadInput(
            f"`tasks` names {len(names)} task{'s' * (len(names) != 1)}: an atlas compares tasks "
            "and needs two at least; for a single one use `broca localize`"
        )
    return names


def listed(names: str | Sequence[str]) -> list[str]:
    """Names from a list, or from one string joined by commas."""
    if isinstance(names, str):
        names = names.split(",")
    return [name.strip() for name in names if name.strip()]


def load_tasks(
    model: GatedModel,
    names: Sequence[str],
    catalog: Catalog,
    *,
    task: str | None = None,
    options: TaskOptions | None = None,
    report: Callable[[str], None] | None = None,
) -> dict[str, Benchmark]:
    """Loads tasks as a model is asked them.

    Args:
        model: Its tokenizer and context.
        names: Tasks, groups or tags; each is loaded once.
        catalog: Where they are.
        task: The localized one, which alone takes the metric of the options and must have their
            locate split.
        options: How the tasks are asked.
        report: Receives which task is built.

    Raises:
        BrocaError: A task is unknown or cannot be used.
    """
    options = options or TaskOptions()
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    benchmarks: dict[str, Benchmark] = {}
    wanted = tuple(dict.fromkeys(names))
    for number, name in enumerate(wanted, start=1):
        if report is not None:
            report(f"building task {number} of {len(wanted)}: {name}")
        benchmarks[name] = catalog.load(
            name,
            tokenizer,
            metric=options.metric if name == task else None,
            options=options,
            require_split=name == task,
        )
    return benchmarks


def lay_out(
    benchmarks: Mapping[str, Benchmark],
    splits: Mapping[str, Split],
    parts: Mapping[Part, Sequence[str]],
) -> tuple[Bank, dict[Part, Places]]:
    """Puts the items of a run into one bank.

    Args:
        benchmarks: Tasks by name.
        splits: Their items, cut.
        parts: For each part of the items the tasks of which it is needed.

    Returns:
        The bank, and for each part the positions of each task's items in it.
    """
    bank: Bank = []
    places: dict[Part, Places] = {}
    for part, names in parts.items():
        places[part] = {}
        for name in names:
            numbers = getattr(splits[name], part)
            places[part][name] = np.arange(len(bank), len(bank) + len(numbers), dtype=np.intp)
            bank += [(benchmarks[name], benchmarks[name].items[number]) for number in numbers]
    return bank, places


def require_controls(task: str, benchmarks: Mapping[str, Benchmark]) -> None:
    """Refuses another task that shares a task with the localized group.

    Raises:
        BadInput: It does.
    """
    members = set(benchmarks[task].task_names)
    for name, benchmark in benchmarks.items():
        shared = members & set(benchmark.task_names)
        if name != task and shared:
            raise BadInput(
                f"`others`: '{name}' shares {', '.join(sorted(shared)[:3])} with '{task}': a task "
                "is not a control of itself"
            )


def require_ability(tasks: TaskSet, scores: Mapping[str, float]) -> None:
    """Refuses a task that the intact model does not do.

    Args:
        tasks: The tasks of a claim.
        scores: Score of the claimed task on its report items.

    Raises:
        NothingToLocalize: It is no better than guessing.
    """
    benchmark, items = tasks.benchmarks[tasks.task], len(tasks.places["report"][tasks.task])
    score = scores[tasks.task]
    if benchmark.at_chance(score, items=items):
        guess = f" and guessing gives {benchmark.chance:.2f}" if benchmark.chance else ""
        raise NothingToLocalize(
            f"the intact model scores {score:.3f} on '{benchmark.name}' ({benchmark.metric}, "
            f"{items} items){guess}: there is nothing to localize; choose a task that the "
            "model can do"
        )


def chance_notes(tasks: TaskSet, scores: Mapping[str, float]) -> tuple[str, ...]:
    """Which tasks are so near chance on the intact model that they can lose little or nothing.

    Args:
        tasks: The tasks of a claim.
        scores: Score of every task on its report items.
    """
    notes = []
    for name, benchmark in tasks.benchmarks.items():
        room = scores[name] - benchmark.chance
        if benchmark.at_chance(scores[name], items=len(tasks.places["report"][name])):
            if name != tasks.task:
                notes.append(f"{name} is at chance on the intact model: it can show no damage")
        elif benchmark.chance and room < NEAR_CHANCE:
            notes.append(
                f"{name} scores {scores[name]:.3f} on the intact model, where guessing gives "
                f"{benchmark.chance:.3f}: it can lose {100 * room:.1f} points of skill at most"
            )
    return tuple(notes)
