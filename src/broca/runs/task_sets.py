"""The tasks of a run: which are meant, how they are loaded, where their items lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, NothingToLocalize
from broca.models import SHIPPED_MODELS, GatedModel
from broca.tasks import Benchmark, Catalog, Item, RequestTokenizer, Split, TaskOptions
from broca.tasks.paper import PAPER_GROUPS

Bank = list[tuple[Benchmark, Item]]
"""The items that plans refer to by position."""

Part = Literal["report", "locate", "confirm"]
Places = dict[str, NDArray[np.intp]]
"""Positions in the bank, by task."""


def other_tasks(
    task: str, others: str | Sequence[str], model: str, catalog: Catalog
) -> tuple[str, ...]:
    """Resolves `others` to task names, the task itself excluded.

    Args:
        task: The task; empty where all tasks are meant.
        others: Names, or one string of them joined by commas. `auto`: all shipped tasks for a
            shipped model, else all of the catalog's folder; `general` stands for the four tasks of
            the paper's group.
        model: The model's name.
        catalog: The tasks that can be named.

    Raises:
        BadInput: The task itself is named.
    """
    if isinstance(others, str):
        if others != "auto":
            names: Sequence[str] = [name.strip() for name in others.split(",") if name.strip()]
        else:
            names = catalog.shipped if model in SHIPPED_MODELS else catalog.included
    else:
        names = others
    if isinstance(others, str) and others != "auto" and task in names:
        raise BadInput(f"task '{task}' is also named in --others: a task is no control of itself")
    members = [member for name in names for member in PAPER_GROUPS.get(name, (name,))]
    return tuple(dict.fromkeys(name for name in members if name != task))


def load_tasks(
    model: GatedModel,
    names: Sequence[str],
    catalog: Catalog,
    *,
    task: str | None = None,
    options: TaskOptions | None = None,
) -> dict[str, Benchmark]:
    """Loads tasks as a model is asked them.

    Args:
        model: Its tokenizer and context.
        names: Tasks, groups or tags; each is loaded once.
        catalog: Where they are.
        task: The localized one, which alone takes the metric of the options and must have their
            locate split.
        options: How the tasks are asked.

    Raises:
        BrocaError: A task is unknown or cannot be used.
    """
    asked = options or TaskOptions()
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    return {
        name: catalog.load(
            name,
            tokenizer,
            metric=asked.metric if name == task else None,
            options=asked,
            require_split=name == task,
        )
        for name in dict.fromkeys(names)
    }


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
        places[part] = {
            name: put(bank, benchmarks[name], getattr(splits[name], part)) for name in names
        }
    return bank, places


def put(bank: Bank, benchmark: Benchmark, numbers: Sequence[int]) -> NDArray[np.intp]:
    """Puts some of a task's items at the end of a bank; returns their positions in it."""
    positions = np.arange(len(bank), len(bank) + len(numbers), dtype=np.intp)
    bank += [(benchmark, benchmark.items[number]) for number in numbers]
    return positions


def cut_note(name: str, benchmark: Benchmark) -> tuple[str, ...]:
    """Says how many prompts of the task of that name did not fit; nothing where all did."""
    if not benchmark.cut_items:
        return ()
    return (
        f"{benchmark.cut_items} of {len(benchmark.items)} prompts of {name} were cut from the "
        "left to fit the model's context",
    )


def require_controls(task: str, benchmarks: Mapping[str, Benchmark]) -> None:
    """Refuses another task that shares a task with the localized group.

    Raises:
        BadInput: It does.
    """
    own = set(benchmarks[task].task_names)
    for name, one in benchmarks.items():
        shared = own & set(one.task_names)
        if name != task and shared:
            raise BadInput(
                f"--others: '{name}' shares {', '.join(sorted(shared)[:3])} with '{task}': a task "
                "is no control of itself"
            )


def require_something_to_localize(benchmark: Benchmark, score: float, items: int) -> None:
    """Refuses a task that the intact model does not do.

    Raises:
        NothingToLocalize: It scores no better than guessing.
    """
    if benchmark.at_chance(score, items=items):
        guess = f"guessing gives {benchmark.chance:.2f}" if benchmark.chance else "that is nothing"
        raise NothingToLocalize(
            f"the intact model scores {score:.3f} on '{benchmark.name}' ({benchmark.metric}, "
            f"{items} items) and {guess}: there is nothing to localize; choose a task that the "
            "model can do"
        )
