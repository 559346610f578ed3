"""Write the shipped lm-eval tasks: the YAML files and the items they ask.

Usage: `python training/make_tasks.py --out src/broca/tasks/shipped`
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from generators import TASKS, Item, Task
from rhymes import family_extract
from task_files import ACCURACY, generation

_COMMON = """\
task: {name}
tag: broca_shipped
custom_dataset: !function shipped_data.load
dataset_kwargs:
  name: {name}
training_split: train
test_split: test
fewshot_split: train
doc_to_text: "{{{{prompt}}}}"
target_delimiter: " "
"""
_CHOICE = """\
output_type: multiple_choice
doc_to_target: "{{answer}}"
doc_to_choice: ["A", "B", "C", "D"]
"""
_RHYME = "process_results: !function shipped_data.score_rhyme\n"
_META = "metadata:\n  version: 1.0\n  capability: {capability}\n"


def yaml_of(task: Task, *, choice: bool) -> str:
    """Return the lm-eval configuration of one task."""
    body = _CHOICE + ACCURACY if choice else generation(16) + "    ignore_case: false\n"
    rhyme = _RHYME if task.name == "rhyming" else ""
    return _COMMON.format(name=task.name) + body + rhyme + _META.format(capability=task.capability)


def draw_distinct(task: Task, count: int, *, held_out: bool, seed: int) -> list[Item]:
    """Draw up to `count` items with distinct prompts from one side of the held-out line."""
    rng = random.Random(f"{task.name}/{seed}")
    items: dict[str, Item] = {}
    for _ in range(count * 50):
        item = task.sample(rng, held_out=held_out)
        items.setdefault(item.prompt, item)
        if len(items) == count:
            break
    return list(items.values())


def write_jsonl(path: Path, items: list[Item]) -> None:
    """Write items as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"prompt": item.prompt, "answer": item.answer}) for item in items]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    """Write all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("src/broca/tasks/shipped"))
    parser.add_argument("--train", type=int, default=1000, help="training items of each task")
    parser.add_argument("--test", type=int, default=600, help="held-out items of each task")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for task in TASKS:
        held_out = draw_distinct(task, options.test, held_out=True, seed=options.seed)
        training = draw_distinct(task, options.train, held_out=False, seed=options.seed)
        write_jsonl(options.out / "data" / task.name / "test.jsonl", held_out)
        write_jsonl(options.out / "data" / task.name / "train.jsonl", training)
        text = yaml_of(task, choice=bool(held_out[0].options))
        (options.out / f"{task.name}.yaml").write_text(text, encoding="utf-8")
        print(f"{task.name}: {len(training)} training, {len(held_out)} held-out items")
    words = options.out / "data" / "rhyming" / "pronunciations.txt"
    words.write_text(family_extract(), encoding="utf-8")


if __name__ == "__main__":
    main()
