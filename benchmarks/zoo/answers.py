"""What the default search answers: `python benchmarks/zoo/answers.py --out FILE [--real SOURCE]`.

The models are those of the zoo with the role `report`; `--real` adds the published model of
`real_models` with the paradigms to report. Every task of a model is localized with all its other
tasks as controls, `--rows` rows a search, and every finding is verified. Each multiple-choice task
is localized a second time with labels that are drawn at random: no set of heads is needed for
those. FILE has a line for each search, and the same command resumes. `--write` writes the table of
README.md from FILE, with the best sets known from `ceilings.json`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from prepared import prepare

prepare()

import numpy as np
from pages import write_between_marks

import broca
from broca.errors import BrocaError
from zoo import HERE, ZooModel, read_best_drops, report_models

PERMUTED = "_permuted"
"""Ending of the name of a task whose labels are drawn at random."""
REPORT_ITEMS = 400
"""Maximum number of report items of the task, and of all other tasks together."""
LARGE, NONE = 0.10, 0.05
"""Smallest worth of a best set known that must not end in `nothing`, and the worth below which no
set is called specific rightly: the default `least`."""
KINDS = {
    "large": f"a set of {100 * LARGE:.0f} points or more is known",
    "small": "the best set known is between",
    "none": f"the best set known is below {100 * NONE:.0f} points",
    "permuted": "labels drawn at random",
}


@dataclass(frozen=True)
class Search:
    """One search, as a line of the file.

    Attributes:
        model: Name of the model.
        task: The task that was localized.
        rows: Rows that the search was given.
        seed: Seed of the items and of the search.
        answer: One of the three answers, or `refused`.
        verdict: Label of the verdict on the set; empty if nothing was selected.
        specific_drop: What the task loses beyond the others on the report items; 0 if nothing was
            selected.
        bound: Upper bound of the specific drop of the best set, if the answer states one.
    """

    model: str
    task: str
    rows: int
    seed: int
    answer: str
    verdict: str = ""
    specific_drop: float = 0.0
    bound: float | None = None

    def kind(self, best_drops: Mapping[tuple[str, str], float]) -> str | None:
        """Returns the kind of the task, a key of `KINDS`; None if no best set was searched for."""
        if self.task.endswith(PERMUTED):
            return "permuted"
        worth = best_drops.get((self.model, self.task))
        if worth is None:
            return None
        return "large" if worth >= LARGE else "none" if worth < NONE else "small"


def with_permuted(entry: ZooModel, folder: Path) -> tuple[ZooModel, tuple[str, ...]]:
    """Writes the tasks of a model, and those with labels drawn at random, into a folder.

    Returns:
        The model with this folder, and the names of the tasks with drawn labels.
    """
    shutil.copytree(entry.include_path, folder)
    permuted = []
    for task in entry.tasks:
        text = (folder / f"{task}.yaml").read_text(encoding="utf-8")
        name = f"{task}{PERMUTED}"
        if "multiple_choice" not in text:
            continue
        permuted.append(name)
        task_data = folder / "data" / f"{task}.jsonl"
        if task_data.exists():
            data, file = task_data, folder / "data" / f"{name}.jsonl"
            text = text.replace(task, name)
        else:
            path = text.split("train: ")[1].splitlines()[0]
            data, file = Path(json.loads(path)), folder / f"{name}.jsonl"
            text = text.replace(path, json.dumps(str(file)))
            text = text.replace(f"task: {task}", f"task: {name}")
        lines = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
        drawn = drawn_labels(lines)
        file.write_text("".join(json.dumps(line) + "\n" for line in drawn), encoding="utf-8")
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return replace(entry, include_path=folder), tuple(permuted)


def drawn_labels(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields items with labels drawn at random; of sentence pairs either may be the good one."""
    rng = np.random.default_rng(0)
    for line in lines:
        if "choices" in line:
            yield line | {"label": int(rng.integers(len(line["choices"])))}
        else:
            pair = [line["sentence_good"], line["sentence_bad"]]
            good = int(rng.integers(2))
            yield line | {"sentence_good": pair[good], "sentence_bad": pair[1 - good]}


def run(entries: Sequence[ZooModel], rows: int, seeds: int, out: Path) -> None:
    """Runs the searches that the file lacks, seed by seed."""
    done = {(stored.model, stored.task, stored.rows, stored.seed) for stored in read(out)}
    with tempfile.TemporaryDirectory() as folder, broca.Workspace() as workspace:
        plans = [with_permuted(entry, Path(folder) / entry.name) for entry in entries]
        for seed in range(seeds):
            for entry, permuted in plans:
                for task in (*entry.tasks, *permuted):
                    if (entry.name, task, rows, seed) in done:
                        continue
                    result = search(entry, task, rows, seed, workspace)
                    with out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(vars(result)) + "\n")
                    print(result, flush=True)


def search(entry: ZooModel, task: str, rows: int, seed: int, workspace: broca.Workspace) -> Search:
    """Localizes a task with all other tasks of the model as controls."""
    plain = task.removesuffix(PERMUTED)
    refused = Search(entry.name, task, rows, seed, "refused")
    try:
        result = broca.localize(
            str(entry.folder), task, others=[name for name in entry.tasks if name != plain],
            rows=rows and 2 * rows,  # half of them are for the verification
            report_items=REPORT_ITEMS, seed=seed, include_path=str(entry.include_path),
            device="cpu", journal=workspace,
        )  # fmt: skip
    except BrocaError:  # the intact model is right too seldom
        return refused
    assert result.answer is not None
    if result.abstained:
        return replace(refused, answer=result.answer.says, bound=result.answer.bound)
    assert result.verdict is not None
    assert result.verification is not None
    return replace(
        refused,
        answer=result.answer.says,
        verdict=result.verdict.label,
        specific_drop=round(result.verification.specific_drop, 4),
    )


def read(out: Path) -> list[Search]:
    """Returns the searches of the file; none if it does not exist."""
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    return [Search(**json.loads(line)) for line in lines]


def table(listed: Sequence[Search], best_drops: Mapping[tuple[str, str], float]) -> str:
    """Returns the number of answers by kind of task, and of bounds below the best set known."""
    says = ("found", "nothing", "not enough rows", "refused")
    lines = [
        f"| tasks | searches | {' | '.join(says)} | found and specific | bounds | too low |",
        f"|{'---|' * (5 + len(says))}",
    ]
    for kind, words in KINDS.items():
        ran = [result for result in listed if result.kind(best_drops) == kind]
        answers = Counter(result.answer for result in ran)
        specific = sum(result.verdict == "specific" for result in ran)
        bounds = [(result.bound, result) for result in ran if result.bound is not None]
        low = sum(
            bound < best_drops.get((result.model, result.task), 0.0) for bound, result in bounds
        )
        cells = [words, len(ran), *(answers[answer] for answer in says), specific, len(bounds), low]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def write(listed: Sequence[Search], readme: Path = HERE / "README.md") -> None:
    """Writes the table of README.md."""
    write_between_marks(readme, "answers.py", table(listed, read_best_drops()))


def main() -> None:
    """Runs the searches, or writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="file of the searches")
    parser.add_argument("--rows", type=int, default=4800, help="rows of a search, all tasks")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--real", type=Path, help="folder of the published model and its data")
    parser.add_argument("--write", action="store_true", help="write the table; run nothing")
    options = parser.parse_args()
    if options.write:
        write(read(options.out))
        return
    with tempfile.TemporaryDirectory() as include_path:
        entries = report_models(options.real, Path(include_path))
        run(entries, options.rows, options.seeds, options.out)
    print(table(read(options.out), read_best_drops()))


if __name__ == "__main__":
    main()
