"""Freezes the results of some runs, and compares them with those of another state of the code.

`python benchmarks/frozen.py run OUT` runs every command in its own folder of OUT and keeps its
results without times; `python benchmarks/frozen.py compare BEFORE AFTER` prints what differs and
ends with 1 if anything does. A refactoring leaves all results equal. `BROCA_REAL` names a folder
with a published model (`models/stories260K`) and paradigms of BLiMP (`blimp/*.jsonl`); without it,
their run is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SEARCH = ["--rows", "1200", "--items", "40", "--others", "capitals,rhyming"]

RUNS: dict[str, list[str]] = {
    "pooled": ["localize", "reference-small", "--task", "addition", *SEARCH],
    "stratified": [
        "localize", "reference-small", "--task", "sorting", "--method", "cs-stratified", *SEARCH,
    ],
    "fresh": ["localize", "planted", "--task", "addition", "--method", "cs-fresh", *SEARCH],
    "greedy": [
        "localize", "reference-small", "--task", "addition", "--method", "greedy", "--rows", "3000",
        "--items", "10", "--k", "2", "--others", "capitals,rhyming", "--no-verify",
    ],
    "published": [
        "localize", "{real}/models/stories260K", "--task", "first", "--others", "second",
        "--rows", "1200", "--items", "40",
    ],
    "verify": ["verify", "{out}/pooled", "--ablation", "mean", "--others", "capitals", "--limit",
               "60"],
    "atlas": ["atlas", "reference-small", "--tasks", "addition,capitals,rhyming", "--rows", "1500"],
    "compare": ["compare", "reference", "planted", "--tasks", "addition,capitals", "--rows", "400",
                "--limit", "60"],
    "stress": ["stress", "planted", "--heads", "L1H3+L2H5", "--pairs", "16"],
    "neurons": ["neurons", "locate", "reference-small", "--task", "capitals", "--items", "12",
                "--steps", "5"],
    "erase": ["neurons", "erase", "reference-small", "--task", "capitals", "--others", "rhyming",
              "--items", "12", "--steps", "5"],
    "export": ["export", "{out}/pooled", "--kind", "adapter"],
}  # fmt: skip
"""Arguments of every run; `{out}` is the folder of all runs, `{real}` that of published data."""

VOLATILE = {
    "seconds", "minutes", "time", "date", "versions", "version", "duration", "rows_per_second",
    "started", "finished", "host", "out", "speed", "created", "path", "source", "location",
    "fingerprint", "identity", "timing", "command", "wall_s", "base_model_name_or_path",
    "adapter_config.json",
}  # fmt: skip
"""Keys that differ from run to run or name a place."""


def run(folder: Path, names: list[str]) -> None:
    """Runs the commands and writes their results."""
    real = os.environ.get("BROCA_REAL")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        arguments = RUNS[name]
        shutil.rmtree(folder / name, ignore_errors=True)
        if name == "published":
            if real is None:
                print("published: left out, BROCA_REAL is not set")
                continue
            arguments = _with_pairs(arguments, Path(real), folder)
        words = [word.format(out=folder, real=real) for word in arguments]
        target = "--to" if words[0] == "export" else "--out"
        command = [sys.executable, "-m", "broca", "--offline", *words, target, str(folder / name)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        (folder / f"{name}.txt").write_text(ended.stdout)
        print(f"{name}: {ended.returncode}" + ("" if not ended.returncode else ended.stderr[-400:]))


def _with_pairs(arguments: list[str], real: Path, folder: Path) -> list[str]:
    """Writes two tasks of sentence pairs, and adds their folder to the arguments."""
    tasks = folder / "pairs"
    tasks.mkdir(exist_ok=True)
    for name, data in zip(
        ("first", "second"), sorted((real / "blimp").glob("*.jsonl")), strict=False
    ):
        (tasks / f"{name}.yaml").write_text(
            f"""task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{train: {data}}}}}
output_type: multiple_choice
validation_split: train
doc_to_text: ""
doc_to_target: 0
doc_to_choice: "{{{{[sentence_good, sentence_bad]}}}}"
metric_list: [{{metric: acc}}]
"""
        )
    return [*arguments, "--include-path", str(tasks)]


def stable(value: Any) -> Any:
    """Returns a JSON value without volatile keys."""
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [stable(inner) for inner in value]
    return value


def results(folder: Path, names: list[str]) -> dict[str, Any]:
    """Returns the stable content of every JSON file of the runs."""
    return {
        f"{name}/{file.name}": stable(json.loads(file.read_text()))
        for name in names
        for file in sorted((folder / name).glob("*.json"))
        if file.name not in ("finished.json", "reproduce.json", "tokenizer.json", "config.json")
    }


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """Lists the places at which two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        lines = []
        for key in sorted({*before, *after}):
            if key not in before or key not in after:
                lines.append(f"{place}.{key}: only {'after' if key in after else 'before'}")
            else:
                lines += differences(before[key], after[key], f"{place}.{key}")
        return lines
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [
            line
            for number, (old, new) in pairs
            for line in differences(old, new, f"{place}[{number}]")
        ]
    return [] if before == after else [f"{place}: {str(before)[:60]} -> {str(after)[:60]}"]


def main() -> int:
    """Runs or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["run", "compare"])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--only", default=",".join(RUNS), help="Names of runs, separated by commas."
    )
    arguments = parser.parse_args()
    names = [name for name in RUNS if name in arguments.only.split(",")]
    if arguments.verb == "run":
        run(arguments.folders[0].absolute(), names)
        return 0
    before, after = (results(folder, names) for folder in arguments.folders)
    lines = differences(before, after)
    print("\n".join(lines) or f"{len(before)} results are equal")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
