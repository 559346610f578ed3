"""Loads the items of the zoo's tasks; lm-eval calls it by `!function`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets

_DATA = Path(__file__).parent / "data"


def load(name: str, **_: Any) -> dict[str, datasets.Dataset]:
    """Return the split `test` of a task, read from its JSON lines."""
    lines = (_DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {"test": datasets.Dataset.from_list([json.loads(line) for line in lines])}
