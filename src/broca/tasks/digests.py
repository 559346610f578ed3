"""Digests of tasks and items: equal digests mean the same question, scored in the same way."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from broca.tasks.benchmark import Benchmark
from broca.tasks.items import Item, Request
from broca.tasks.prepared import PreparedTask

DIGEST_BYTES = 16

_PLACES = frozenset(
    {
        "dataset_path", "dataset_name", "dataset_kwargs", "custom_dataset", "training_split",
        "validation_split", "test_split", "fewshot_split", "tag", "task_alias",
    }
)  # fmt: skip
"""Settings for the source of the data, which are not digested because the items are."""


def definition_digest(benchmark: Benchmark) -> bytes:
    """Returns the digest of a task's settings, its functions' files and lm-eval's version.

    The path of its data and the metric function of a rescored task are not digested: a task that is
    copied to another folder is the same task.

    Returns:
        16 bytes.
    """
    return _digest([version("lm-eval"), benchmark.name, [_part(part) for part in benchmark._parts]])


def item_digests(benchmark: Benchmark, items: Sequence[Item]) -> list[bytes]:
    """Returns the digest of every item: its task's definition, its document, its requests' tokens.

    Returns:
        16 bytes for each item.
    """
    definition = definition_digest(benchmark).hex()
    return [
        _digest([definition, benchmark.document(item), _contents(item.requests)]) for item in items
    ]


def margin_digest(benchmark: Benchmark, item: Item, digest: bytes) -> bytes:
    """Returns the digest of an item's margin, which includes the compared answers.

    Args:
        benchmark: Task of the item.
        item: The item.
        digest: Digest of the item.

    Returns:
        16 bytes; the digest of the item if it has no margin.
    """
    margin = benchmark.margin(item)
    if margin is None:
        return digest
    return _digest([digest.hex(), _contents(margin.requests), margin.gold])


def _part(part: PreparedTask) -> dict[str, Any]:
    config = part.harness.config.to_dict()
    settings = {name: value for name, value in config.items() if name not in _PLACES}
    metadata = dict(settings.pop("metadata", None) or {})
    metadata.pop("config_source", None)
    # a caller's function may change undetected: outputs are shared, scores are not kept
    rescored = bool(metadata.get("rescored"))
    if rescored:
        settings.pop("metric_list", None)
    return {
        "name": part.name,
        "settings": settings,
        "metadata": metadata,
        "metric": "" if rescored else part.metric.full_name,
        "class": type(part.harness).__qualname__,
        "code": sorted(set(_code(part.harness))),
    }


def _contents(requests: Sequence[Request]) -> list[Any]:
    return [
        [
            request.kind, request.context, request.continuation, request.stop,
            request.max_new_tokens, *([request.settings] if request.settings else []),
        ]
        for request in requests
    ]  # fmt: skip


def tokenizer_digest(tokenizer: Any) -> str:
    """Returns the digest of a tokenizer and its special tokens.

    Returns:
        32 hexadecimal digits.
    """
    fast = getattr(tokenizer, "backend_tokenizer", None)
    content = fast.to_str() if fast is not None else sorted(tokenizer.get_vocab().items())
    return _digest([content, sorted(map(str, tokenizer.special_tokens_map.items()))]).hex()


def _code(task: Any) -> Iterator[str]:
    """Returns the digests of the task's functions' files, with other files in their folders."""
    config = task.config
    values = [getattr(config, name, None) for name in vars(config)]
    for function in [*values, type(task)]:
        if not callable(function):
            continue
        try:
            file = inspect.getsourcefile(function)
        except TypeError:  # a callable object without source code
            file = None
        if file is not None and Path(file).is_file():
            yield hashlib.blake2b(Path(file).read_bytes(), digest_size=DIGEST_BYTES).hexdigest()


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()
