"""Resolves, loads and lays out the tasks of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, NothingToLocalize
from broca.known_paths import SHIPPED_MODELS
from broca.models import GatedModel
from broca.results.verification import Documents, places_in
from broca.tasks import PAPER_GROUPS, Benchmark, Catalog, RequestTokenizer, TaskOptions, Tasks
from broca.tasks.items import Generation, Item, Output, Split
from broca.verification import Trial, roles
from broca.verification.trial import Places, spread

Bank = list[tuple[Benchmark, Item]]
"""The items that plans refer to by position."""

IntactAnswers = Callable[[Sequence[int]], list[tuple[Output, ...]]]
"""Returns the intact model's answers to items, by their places in the bank."""

Part = Literal["report", "locate", "confirm"]
"""A part into which items are cut."""

_FEWEST_FRESH = 8
"""Minimum number of items on which a claim is replicated."""

NEAR_CHANCE = 0.15
"""Score above chance below which a task has little to lose."""

_ENDLESS = (
    "if the right answer is there and goes on, end it with `until` (`gen_kwargs` 'until=\\n')"
)


@dataclass(frozen=True, eq=False)
class TaskSet:
    """The tasks of a run with their items; empty by default.

    Attributes:
        task: The task that the run is about; empty if all tasks have the same role.
        same_skill: Other tasks of its capability.
        others: Tasks that a selection should not affect.
        benchmarks: All tasks by name.
        bank: Their items.
        places: Positions of each task's items in the bank, by part.
        notes: Notes for the reader on the choice of tasks.
        texts: Positions of sentences of neutral text, which belong to no task.
    """

    task: str = ""
    same_skill: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    benchmarks: Mapping[str, Benchmark] = field(default_factory=dict)
    bank: Bank = field(default_factory=list)
    places: Mapping[Part, Places] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    texts: range = range(0)

    def with_text(self, text: Benchmark, vocabulary: int) -> TaskSet:
        """Returns the tasks with the sentences of neutral text that a model has tokens for."""
        bank = list(self.bank)
        for item in text.items:
            tokens = [(*one.context, *one.continuation) for one in item.requests]
            if max(map(max, tokens)) < vocabulary:
                bank.append((text, item))
        return replace(self, bank=bank, texts=range(len(self.bank), len(bank)))

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
        """Returns the scored tokens of some items, prompt and continuation.

        Args:
            positions: Positions of the items in the bank.

        Returns:
            The position of the item and the tokens of every request; equal requests of an item
            occur once. A generation has only its prompt, because its output depends on the mask.
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
        """The documents of each part of the items."""
        document_places: dict[tuple[str, str, str, str], list[int]] = {}
        for part, by_task in self.places.items():
            for name, positions in by_task.items():
                for position in positions.tolist():
                    benchmark, item = self.bank[position]
                    member, split, place = benchmark.document_place(item)
                    key = (name, part, member, split)
                    document_places.setdefault(key, []).append(place)
        return tuple(Documents(*key, tuple(places)) for key, places in document_places.items())

    def within(self, rows: int, needed: Callable[[Trial], int]) -> TaskSet:
        """Returns the tasks with as many report items as fit into some rows.

        Args:
            rows: The rows.
            needed: Returns the largest number of rows on the report items of a trial.

        Raises:
            BadInput: Even 8 items of the task need more.
        """
        tasks, count = self, len(self.places["report"][self.task])
        while (most := needed(tasks.trial())) > rows:
            if count <= _FEWEST_FRESH:
                raise BadInput(
                    f"{most:,} rows are needed on '{self.task}' and {len(self.benchmarks) - 1} "
                    f"others, and `rows` leave {rows:,}: give more, or fewer components or tasks"
                )
            count = max(_FEWEST_FRESH, 9 * count // 10)
            fewer = self.trial().smaller(count)
            report = {name: fewer[name] for name in self.places["report"]}
            tasks = replace(self, places={**self.places, "report": report})
        return tasks

    def notes_of(self, name: str) -> tuple[str, ...]:
        """Notes for the reader on a task and its items."""
        benchmark = self.benchmarks[name]
        cut = (
            f"{benchmark.cut_items} of {len(benchmark.items)} prompts of {name} were cut from the "
            "left to fit the model's context",
        )
        return benchmark.notes + cut if benchmark.cut_items else benchmark.notes


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
    seen: Sequence[Documents] = (),
) -> TaskSet:
    """Cuts the items of the tasks of a claim by seed.

    Args:
        task: The claimed task.
        benchmarks: All tasks by name, the claimed one included.
        same_skill: Tasks of its capability; those whose metadata say so are added.
        items: Maximum number of `locate` and of `confirm` items of each task.
        seed: Seed of the cut.
        limit: Maximum number of `report` items of each task; all by default.
        report_items: Maximum number of `report` items of the task, of each task of its skill, and
            of all others together, evenly spaced over those that `limit` leaves; all by default.
        searched: `all` if a search may measure `locate` and `confirm` items of all tasks except
            those of the same skill; `task` if only the task's `locate` items are needed.
        seen: Documents that an earlier run used: `report` items are then all others.

    Raises:
        BadInput: The task has too few others, or is named as one of its skill.
    """
    if task in same_skill:
        raise BadInput(f"task '{task}' is also named in `same_skill`: leave it out there")
    same, others = roles(task, benchmarks, same_skill)
    splits = splits_of(benchmarks, items=items, seed=seed, limit=limit)
    notes = []
    for name in benchmarks if seen else ():
        splits[name], note = _fresh(benchmarks[name], splits[name], seen, required=name == task)
        notes += note
    if report_items is not None:
        reported = {name: np.array(split.report, dtype=np.intp) for name, split in splits.items()}
        fewer = Trial(task, same, others, benchmarks, reported).smaller(report_items)
        splits = {
            name: replace(split, report=tuple(fewer[name].tolist()))
            for name, split in splits.items()
        }
    parts: dict[Part, Sequence[str]] = {"report": tuple(benchmarks), "locate": (task,)}
    if searched == "all":
        parts |= {"locate": (task, *others), "confirm": (task, *others)}
    bank, places = lay_out(benchmarks, splits, parts)
    return TaskSet(task, same, others, benchmarks, bank, places, tuple(notes))


def _fresh(
    benchmark: Benchmark, split: Split, seen: Sequence[Documents], *, required: bool
) -> tuple[Split, list[str]]:
    """Returns a split whose report items ask what an earlier run did not, and a note if few do.

    If fewer than eight are left, they are those that the run did not report on.

    Raises:
        BadInput: There are fewer than eight of these either, and they are required.
    """
    whole = benchmark.split(items=len(benchmark.items), seed=0)
    every = sorted({*whole.locate, *whole.confirm, *whole.report})
    located, asks = {*split.locate}, list(map(benchmark.asks, benchmark.items))
    places = list(map(benchmark.document_place, benchmark.items))
    for parts, note in (
        (("locate", "confirm", "report"), ""),
        (("report",), "items that the run searched on are among the fresh ones"),
    ):
        used = places_in(seen, *parts)
        known = {ask for n, ask in enumerate(asks) if n in located or places[n] in used}
        fresh = [n for n in every if asks[n] not in known]
        if len(fresh) >= _FEWEST_FRESH:
            return replace(split, report=tuple(fresh)), [f"{benchmark.name}: {note}"] * bool(note)
    if required:
        raise BadInput(
            f"task '{benchmark.name}' has {len(fresh)} items on which the run did not report: too "
            "few to replicate on"
        )
    return split, [f"{benchmark.name}: its items are those of the run"]


def equal_tasks(
    benchmarks: Mapping[str, Benchmark], *parts: Part, items: int, seed: int, limit: int | None
) -> TaskSet:
    """Cuts parts of the items of tasks that all have the same role.

    Args:
        benchmarks: The tasks by name.
        parts: The parts that are needed.
        items: Maximum number of `locate` items of each task.
        seed: Seed of the cut.
        limit: Maximum number of `report` items of each task; all by default.
    """
    splits = splits_of(benchmarks, items=items, seed=seed, limit=limit)
    return _of_one_role(benchmarks, splits, parts)


def whole_tasks(benchmarks: Mapping[str, Benchmark]) -> TaskSet:
    """Lays out all items of tasks that all have the same role, as `report` items."""
    splits = {
        name: Split((), (), tuple(range(len(benchmark.items))))
        for name, benchmark in benchmarks.items()
    }
    return _of_one_role(benchmarks, splits, ("report",))


def _of_one_role(
    benchmarks: Mapping[str, Benchmark], splits: Mapping[str, Split], parts: Sequence[Part]
) -> TaskSet:
    """Lays out parts of the items of tasks that all have the same role."""
    names = tuple(benchmarks)
    bank, places = lay_out(benchmarks, splits, dict.fromkeys(parts, names))
    return TaskSet(others=names, benchmarks=benchmarks, bank=bank, places=places)


def splits_of(
    benchmarks: Mapping[str, Benchmark], *, items: int, seed: int, limit: int | None
) -> dict[str, Split]:
    """Cuts the items of tasks, with at most `items` to locate on and `limit` to report on."""
    splits = {}
    for name, benchmark in benchmarks.items():
        split = benchmark.split(items=items, seed=seed)
        splits[name] = replace(split, report=tuple(spread(split.report, limit).tolist()))
    return splits


MOST_OTHERS = 8
"""Maximum number of tasks of a folder that `auto` stands for."""


def other_tasks(
    task: str, others: Tasks, model: GatedModel, catalog: Catalog, *, chat: bool = False
) -> tuple[str, ...]:
    """Resolves `others` to task names, the task itself excluded.

    Args:
        task: The task; empty where all tasks are meant.
        others: Tasks, or one string of names joined by commas. `auto`: the shipped neutral text
            for a task of one's own examples, in a chat template also short questions; else all
            shipped tasks for a shipped model, else those of the catalog's folder, without the
            task, of which it takes `MOST_OTHERS` at even steps through their names where there
            are more (`sampling_note` says so). `general` stands for the four tasks of the paper's
            group, without the task where it is one of them.
        model: The model.
        catalog: The tasks that can be named.
        chat: Whether prompts are written in a chat template.

    Raises:
        BadInput: The task itself is named.
    """
    if others == "auto" and task and catalog.is_own(task):
        names = catalog.controls(chat=chat)
    elif others == "auto":
        names = auto_tasks(model, catalog)
        if task and model.source not in SHIPPED_MODELS:
            names = tuple(name for name in names if name != task)
            count = min(MOST_OTHERS, len(names))
            names = tuple(names[place * len(names) // count] for place in range(count))
    else:
        names = tuple(catalog.names_of(others))
        if task in names:
            raise BadInput(
                f"task '{task}' is also named in `others`: a task is not a control of itself"
            )
    members = [member for name in names for member in PAPER_GROUPS.get(name, (name,))]
    return tuple(dict.fromkeys(name for name in members if name != task))


def sampling_note(
    task: str, others: Tasks, names: Sequence[str], catalog: Catalog
) -> tuple[str, ...]:
    """Returns a note on the tasks that `auto` stands for if it leaves out some.

    Args:
        task: The task.
        others: The value of `others`.
        names: The names that `other_tasks` returned for it.
        catalog: The tasks that can be named.
    """
    folder_tasks = [name for name in catalog.included if name != task]
    if others != "auto" or len(names) != MOST_OTHERS or len(folder_tasks) <= MOST_OTHERS:
        return ()
    return (
        f"the other tasks are {len(names)} of the {len(folder_tasks)} in the folder, at even steps "
        f"through their names ({', '.join(names)}): `others` names more",
    )


def auto_tasks(model: GatedModel, catalog: Catalog) -> tuple[str, ...]:
    """The tasks that `auto` stands for: the shipped ones for a shipped model, else the folder's."""
    return tuple(catalog.shipped if model.source in SHIPPED_MODELS else catalog.included)


def compared_tasks(tasks: Tasks, model: GatedModel, catalog: Catalog) -> tuple[str, ...]:
    """The tasks that an atlas compares, each once; all shipped ones for `auto`.

    Raises:
        BadInput: There are fewer than two, or one is unknown.
    """
    every = auto_tasks(model, catalog) if tasks == "auto" else catalog.names_of(tasks)
    names = tuple(dict.fromkeys(every))
    if len(names) < 2:
        raise BadInput(
            f"an atlas compares two tasks or more, not {len(names)}: name more in `tasks`, or a "
            "folder of tasks in `include_path`; for a single task use `broca localize`"
        )
    return names


def load_tasks(
    model: GatedModel,
    names: Sequence[str],
    catalog: Catalog,
    *,
    task: str | None = None,
    options: TaskOptions | None = None,
    report: Callable[[str], None] | None = None,
) -> dict[str, Benchmark]:
    """Loads tasks for a model.

    Args:
        model: The model, for its tokenizer and context length.
        names: Tasks, groups or tags; each is loaded once.
        catalog: The catalog of the tasks.
        task: The localized task; it alone takes the metric of the options and must have their
            locate split.
        options: How the tasks are prompted and scored.
        report: Receives a line for each task that is built.

    Raises:
        BrocaError: A task is unknown or cannot be used.
    """
    options = options or TaskOptions()
    tokenizer = RequestTokenizer.of(model, options)
    benchmarks: dict[str, Benchmark] = {}
    names = tuple(dict.fromkeys(names))
    for number, name in enumerate(names, start=1):
        if report is not None:
            report(f"building task {number} of {len(names)}: {name}")
        benchmarks[name] = catalog.load(
            name, tokenizer, metric=options.metric if name == task else None, options=options,
            require_split=name == task,
        )  # fmt: skip
    if options.generation and names and task in (None, names[0]):
        items = chain(*(benchmark.items for benchmark in benchmarks.values()))
        if not any(request.max_new_tokens for item in items for request in item.requests):
            note = f"`gen_kwargs` has no effect on tasks that generate nothing, such as {names[0]}"
            first = benchmarks[names[0]]
            benchmarks[names[0]] = replace(first, notes=(*first.notes, note))
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
        parts: The tasks whose items are needed, by part.

    Returns:
        The bank, and the positions of each task's items in it, by part.
    """
    bank: Bank = []
    places: dict[Part, Places] = {}
    for part, names in parts.items():
        positions: dict[str, NDArray[np.intp]] = {}
        for name in names:
            numbers = getattr(splits[name], part)
            positions[name] = np.arange(len(bank), len(bank) + len(numbers), dtype=np.intp)
            bank += [(benchmarks[name], benchmarks[name].items[number]) for number in numbers]
        places[part] = positions
    return bank, places


def require_controls(task: str, benchmarks: Mapping[str, Benchmark]) -> None:
    """Refuses another task that shares a task with the localized group.

    Raises:
        BadInput: Another task shares a task with it.
    """
    members = set(benchmarks[task].task_names)
    for name, benchmark in benchmarks.items():
        shared = members & set(benchmark.task_names)
        if name != task and shared:
            raise BadInput(
                f"`others`: '{name}' shares {', '.join(sorted(shared)[:3])} with '{task}': a task "
                "is not a control of itself"
            )


def require_ability(tasks: TaskSet, scores: Mapping[str, float], answers: IntactAnswers) -> None:
    """Refuses a task that the intact model cannot do.

    Args:
        tasks: The tasks of a claim.
        scores: Score of the claimed task on its report items.
        answers: Answers the requests of items with the intact model.

    Raises:
        NothingToLocalize: The model is no better than guessing.
    """
    benchmark, items = tasks.benchmarks[tasks.task], len(tasks.places["report"][tasks.task])
    score = scores[tasks.task]
    if tasks.trial().guesses(tasks.task, score):
        guess = f" and guessing gives {benchmark.chance:.2f}" if benchmark.chance else ""
        shown = ""
        if benchmark.kind == "generate_until":
            places = tasks.places["report"][tasks.task][:3].tolist()
            asked = [tasks.bank[place][1] for place in places]
            lines = (
                f"\n  {item.prompt[-60:]!r} -> {output.text[:60]!r}, expected {item.target[:60]!r}"
                for item, (output,) in zip(asked, answers(places), strict=True)
                if isinstance(output, Generation)
            )
            other = ""
            if "contains" in benchmark.metric_names:
                other = " or take the `metric` first-word or contains"
            shown = f"; {_ENDLESS}{other}:" + "".join(lines)
        raise NothingToLocalize(
            f"the intact model scores {score:.3f} on '{benchmark.name}' ({benchmark.metric}, "
            f"{items} items){guess}: there is nothing to localize; choose a task that the "
            f"model can do{shown}"
        )


def at_chance_note(trial: Trial, name: str, score: float) -> str:
    """Returns the note on a task that the intact model is not shown to do."""
    benchmark = trial.benchmarks[name]
    endless = f"; {_ENDLESS}" if score == 0 and benchmark.kind == "generate_until" else ""
    return (
        f"the intact model scores {score:.3f} on {name} ({len(trial.places[name])} items), not "
        f"shown to beat guessing ({benchmark.chance:.3f}): no loss can show there{endless}"
    )


def chance_notes(tasks: TaskSet, scores: Mapping[str, float]) -> tuple[str, ...]:
    """Returns notes on tasks near chance, which can lose little or nothing.

    Args:
        tasks: The tasks of a claim.
        scores: Score of every task on its report items.
    """
    notes, trial = [], tasks.trial()
    for name, benchmark in tasks.benchmarks.items():
        room = scores[name] - benchmark.chance
        if name != tasks.task and trial.guesses(name, scores[name]):
            notes.append(at_chance_note(trial, name, scores[name]))
        elif benchmark.chance and room < NEAR_CHANCE:
            notes.append(
                f"{name} scores {scores[name]:.3f} on the intact model, where guessing gives "
                f"{benchmark.chance:.3f}: it can lose {100 * room:.1f} points at most"
            )
    if tasks.others and not trial.judged(scores).others:
        notes.append(
            "the intact model is shown to do none of the other tasks, so that nothing shows what "
            f"only {tasks.task} needs: name others in `others`, or give more `rows`, hence items"
        )
    return tuple(notes)
