"""Models to develop and to report methods on, outside the package: see README.md in this folder.

from zoo import models, real_models
for entry in models("develop"):
    broca.localize(str(entry.folder), entry.tasks[0], others=entry.tasks[1:],
                   include_path=str(entry.include_path))
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Role = Literal["develop", "report"]

HERE = Path(__file__).parent

REAL_MODEL = "stories260K"
REAL_TASKS: dict[Role, tuple[str, ...]] = {
    "develop": ("left_branch_island_echo_question", "wh_questions_subject_gap"),
    "report": (
        "anaphor_gender_agreement",
        "irregular_past_participle_verbs",
        "existential_there_quantifiers_1",
        "sentential_negation_npi_licensor_present",
        "principle_A_domain_1",
        "principle_A_case_1",
    ),
}
"""Paradigms of BLiMP by role."""

_PAIRS = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    train: {file}
output_type: multiple_choice
validation_split: train
doc_to_text: ""
doc_to_target: 0
doc_to_choice: "{{{{[sentence_good, sentence_bad]}}}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""


@dataclass(frozen=True)
class ZooModel:
    """A model with its tasks.

    Attributes:
        name: Its name.
        role: Whether methods may be developed on it, or only their figures reported.
        folder: Its weights, configuration and tokenizer, as transformers loads them.
        tasks: Names of its tasks.
        include_path: Folder of the tasks' lm-eval files.
    """

    name: str
    role: Role
    folder: Path
    tasks: tuple[str, ...]
    include_path: Path


def models(role: Role | None = None) -> Iterator[ZooModel]:
    """Yields the models of the zoo by name, all or those of a role."""
    for card in sorted((HERE / "models").glob("*/card.json")):
        facts = json.loads(card.read_text(encoding="utf-8"))
        if role in (None, facts["role"]):
            yield ZooModel(
                name=card.parent.name,
                role=facts["role"],
                folder=card.parent,
                tasks=tuple(facts["scores"]),
                include_path=HERE / "tasks",
            )


def read_best_drops() -> dict[tuple[str, str], float]:
    """Returns the specific drop of the best set known, by model and task."""
    ceilings = json.loads((HERE / "ceilings.json").read_text(encoding="utf-8"))
    return {
        (name, task): ceiling["specific_drop"]
        for name, results in ceilings.items()
        for task, ceiling in results.get("ceilings", {}).items()
    }


def real_models(source: Path, include_path: Path) -> Iterator[ZooModel]:
    """Yields a published model twice, with the tasks to develop on and with those to report.

    No part of it is in this project; it is read from `source`.

    Args:
        source: Folder with `models/stories260K` (Llama by Andrej Karpathy, as transformers loads
            it) and `blimp/PARADIGM.jsonl` (Warstadt et al. 2020).
        include_path: Folder that the tasks' lm-eval files are written into.

    Raises:
        FileNotFoundError: The model or a paradigm is missing.
    """
    folder = source / "models" / REAL_MODEL
    files = {
        name: source / "blimp" / f"{name}.jsonl" for tasks in REAL_TASKS.values() for name in tasks
    }
    for path in (folder, *files.values()):
        if not path.exists():
            raise FileNotFoundError(
                f"{path} does not exist: `source` must hold model and paradigms"
            )
    include_path.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        text = _PAIRS.format(name=name, file=json.dumps(str(file.resolve())))
        (include_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    for role, tasks in REAL_TASKS.items():
        yield ZooModel(f"{REAL_MODEL}-{role}", role, folder, tasks, include_path)


def report_models(source: Path | None, include_path: Path) -> list[ZooModel]:
    """Returns the models to report on: the published one, unless `source` is None, and the zoo's.

    Args:
        source: As for `real_models`.
        include_path: As for `real_models`.
    """
    published = real_models(source, include_path) if source is not None else ()
    return [*(entry for entry in published if entry.role == "report"), *models("report")]
