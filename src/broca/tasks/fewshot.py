"""Solved examples never come from scored items.

lm-eval draws a question's examples from the task's few-shot split; if this is the scored split, it
excludes only the question itself. In this case broca reserves some documents, by seed, for
examples: a few tens, at most a tenth of the split. If the task takes the first documents
(`first_n`), these are reserved, so that the other questions have lm-eval's prompts. Tasks whose
examples come from another split are unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from broca.errors import TaskUnusable

_FEWEST_ITEMS = 8


def set_fewshot(task: Any, count: int | None) -> str | None:
    """Sets the number of examples of a task, by lm-eval's rule.

    Args:
        task: A loaded harness task; it is changed.
        count: Number of examples for each question; None leaves it to the task.

    Returns:
        A note if the task fixes 0 and another number was requested.
    """
    stated = task.get_config("num_fewshot")
    if count is not None and stated == 0 != count:
        return f"{task.task_name} fixes 0 solved examples, as in lm-eval: it got none"
    task.set_config("num_fewshot", count if count is not None else stated or 0)
    return None


def keep_apart(task: Any, scored_splits: Iterable[str | None]) -> tuple[frozenset[str], str | None]:
    """Makes sure that no example is a scored item.

    Args:
        task: A loaded harness task whose number of examples is set; its sampler may be changed.
        scored_splits: Official splits of the items.

    Returns:
        Keys of the documents that must not be items (see `document_key`), and a note on them.

    Raises:
        TaskUnusable: There are fewer documents than examples.
    """
    count = task.config.num_fewshot or 0
    if count == 0:
        return frozenset(), None
    sampler = getattr(task, "sampler", None)
    if sampler is None:
        raise TaskUnusable(
            f"task '{task.task_name}' chooses its examples with its own code: set `num_fewshot` "
            "to 0, so that none is a scored item"
        )
    pool = list(sampler.df)
    split = _pool_split(task)
    if split is not None and split in set(scored_splits):
        reserved = _reserve(task, pool, count)
        return frozenset(document_key(task, document) for document in reserved), (
            f"{len(reserved)} documents of {task.task_name} served as solved examples only: "
            f"examples and items come from the same split ({split})"
        )
    _require(task, len(pool), count)
    if split is None:  # written in the task's file, perhaps copied from scored documents
        written = [document for document in pool if _complete(task, document)]
        return frozenset(document_key(task, document) for document in written), None
    return frozenset(), None


def document_key(task: Any, document: Any) -> str:
    """Returns prompt and target of a document, which are equal for its copies."""
    choices = task.doc_to_choice(document) if task.config.doc_to_choice is not None else None
    return repr((task.doc_to_text(document), choices, task.doc_to_target(document)))


def _pool_split(task: Any) -> str | None:
    """Returns the split of the examples; None if the task's file contains them."""
    fewshot, config = task.fewshot_cfg, task.config
    if fewshot.split is not None:
        return str(fewshot.split)
    if fewshot.samples is not None:
        return None
    return config.training_split or config.validation_split or config.test_split  # type: ignore[no-any-return]


def _reserve(task: Any, pool: Sequence[Any], count: int) -> list[Any]:
    """Reserves documents for examples and returns them: the first ones, or some by seed."""
    from lm_eval.api.samplers import FirstNSampler

    if isinstance(task.sampler, FirstNSampler):
        _require(task, len(pool) - 1, count)
        return list(pool[:count])  # the pool stays whole: lm-eval removes the question from it
    # lm-eval draws one more than needed if examples and items share a split
    _require(task, len(pool) - _FEWEST_ITEMS - 1, count)
    size = max(count + 1, min(10 * count, len(pool) // 10))
    order = np.random.default_rng(zlib.crc32(task.task_name.encode())).permutation(len(pool))
    reserved = [pool[position] for position in sorted(order[:size])]
    task.sampler.replace_df(reserved)
    return reserved


def _require(task: Any, available: int, count: int) -> None:
    if count > available:
        raise TaskUnusable(
            f"`num_fewshot` {count} is more than the {max(available, 0)} examples that task "
            f"'{task.task_name}' has: use fewer"
        )


def _complete(task: Any, document: Any) -> bool:
    """Whether an example of the task's file has the fields of a document."""
    return isinstance(document, dict) and set(task.features) <= set(document)
