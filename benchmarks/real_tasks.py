"""GSM8K and HumanEval from their files: `python benchmarks/real_tasks.py --model M --gsm8k DIR`.

Both have lm-eval's definitions with local data. lm-eval's `hf` model and broca's engine answer the
same documents; texts and scores must be equal. Then `localize` runs on each task from end to end.
The programs that models write for HumanEval are executed in broca's sandbox on both sides.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prepared import prepare

prepare()

import numpy as np

import broca
from broca.engine import Engine
from broca.errors import NothingToLocalize
from broca.models import GatedModel
from broca.options import TaskOptions
from broca.tasks import Catalog, RequestTokenizer
from broca.tasks.code import code_tasks
from broca.tasks.task_index import harness_entry

TASK = """
include: {definition}
task: {name}
dataset_path: json
dataset_name: null
dataset_kwargs: {{data_files: {{{files}}}}}
"""

METRICS = {"gsm8k": "exact_match,flexible-extract", "humaneval": "pass@1"}


@dataclass(frozen=True)
class Comparison:
    """One task, answered by lm-eval and by broca.

    Attributes:
        task: lm-eval's name of the task.
        documents: Number of documents.
        equal_texts: Number of identical generations.
        harness_score: lm-eval's score.
        broca_score: broca's score.
    """

    task: str
    documents: int
    equal_texts: int
    harness_score: float
    broca_score: float


def write_tasks(folder: Path, *, gsm8k: Path | None, humaneval: Path | None) -> list[str]:
    """Writes task files that include lm-eval's own and read local data; returns their names.

    Args:
        folder: Folder of the task files.
        gsm8k: Folder with `train.jsonl` and `test.jsonl`.
        humaneval: Path of `HumanEval.jsonl`.
    """
    places = {
        "gsm8k": gsm8k and {name: gsm8k / f"{name}.jsonl" for name in ("train", "test")},
        "humaneval": humaneval and {"test": humaneval},
    }
    written = []
    for name, files in places.items():
        if files:
            text = TASK.format(
                definition=harness_entry(name).yaml_path,
                name=f"{name}_local",
                files=", ".join(f"{split}: {path.resolve()}" for split, path in files.items()),
            )
            (folder / f"{name}_local.yaml").write_text(text)
            written.append(f"{name}_local")
    return written


def harness_answers(
    model: GatedModel, task: str, folder: Path, *, limit: int, gen_kwargs: str
) -> tuple[list[str], float]:
    """Returns the text of lm-eval's `hf` model for each document, and its score."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    with contextlib.redirect_stderr(io.StringIO()), code_tasks("bubblewrap"):
        results = simple_evaluate(
            HFLM(
                pretrained=model.model, tokenizer=model.tokenizer, max_length=model.max_length,
                batch_size=1,
            ),
            tasks=[task],
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            limit=limit,
            gen_kwargs=gen_kwargs,
            bootstrap_iters=0,
            log_samples=True,
            confirm_run_unsafe_code=True,
        )  # fmt: skip
    samples = {sample["doc_id"]: sample["resps"][0][0] for sample in results["samples"][task]}
    name, _, chosen = METRICS[task.removesuffix("_local")].partition(",")
    scores = results["results"][task]
    key = next(key for key in scores if key.startswith(f"{name},{chosen}"))
    return [samples[number] for number in sorted(samples)], float(scores[key])


def compared(
    model: GatedModel, task: str, folder: Path, *, limit: int, gen_kwargs: str
) -> Comparison:
    """Compares both sides on the first documents of a task."""
    expected, harness = harness_answers(model, task, folder, limit=limit, gen_kwargs=gen_kwargs)
    benchmark = Catalog(folder, allow_code=True).load(
        task,
        RequestTokenizer(model.tokenizer, max_length=model.max_length),
        metric=METRICS[task.removesuffix("_local")],
        options=TaskOptions(limit=limit, gen_kwargs=gen_kwargs),
    )
    requests = [request for item in benchmark.items for request in item.requests]
    gates = np.ones((1, len(model.components)), dtype=np.float32)
    answers = Engine(model).run(requests, gates, np.zeros(len(requests), dtype=np.intp))
    scores = [
        benchmark.score(item, [answer])
        for item, answer in zip(benchmark.items, answers, strict=True)
    ]
    texts: list[Any] = [answer.text for answer in answers]  # type: ignore[union-attr]
    equal = sum(text == expected_text for text, expected_text in zip(texts, expected, strict=True))
    return Comparison(
        task, len(texts), equal, harness, benchmark.aggregate(scores, benchmark.items)
    )


def localized(model: GatedModel, task: str, folder: Path, *, limit: int, gen_kwargs: str) -> str:
    """Returns the selection of `localize` as text, or its refusal."""
    try:
        result = broca.localize(
            model, task, others=[], method="one-shot", include_path=folder, allow_code=True,
            limit=limit, gen_kwargs=gen_kwargs, items=2, k=1,
        )  # fmt: skip
    except NothingToLocalize as error:
        return f"refused after scoring the intact model: {error}"
    return f"selected {'+'.join(result.selected) or 'nothing'}"


def main(words: list[str] | None = None) -> list[Comparison]:
    """Compares both sides and prints a line for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a folder or a hub id")
    parser.add_argument("--gsm8k", type=Path, help="folder with train.jsonl and test.jsonl")
    parser.add_argument("--humaneval", type=Path, help="HumanEval.jsonl")
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--gen-kwargs", default="max_gen_toks=64")
    arguments = parser.parse_args(words)
    model = broca.load(arguments.model, device="cpu")
    how = {"limit": arguments.limit, "gen_kwargs": arguments.gen_kwargs}
    comparisons = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = write_tasks(folder, gsm8k=arguments.gsm8k, humaneval=arguments.humaneval)
        if not names:
            sys.exit("give --gsm8k, --humaneval or both")
        for name in names:
            comparison = compared(model, name, folder, **how)
            comparisons.append(comparison)
            print(
                f"{name}: {comparison.equal_texts} of {comparison.documents} texts equal, lm-eval "
                f"{comparison.harness_score:.4f}, broca {comparison.broca_score:.4f}; localize: "
                f"{localized(model, name, folder, **how)}",
                flush=True,
            )
    return comparisons


if __name__ == "__main__":
    main()
