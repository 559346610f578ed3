"""Prepares an lm-eval task by the options: builds its requests once, and tokenizes them.

Solved examples never come from scored items. lm-eval draws a question's examples from the task's
few-shot split; if this is the scored split, it excludes only the question itself. In this case
broca reserves some documents, by seed, for examples: a few tens, at most a tenth of the split. If
the task takes the first documents (`first_n`), these are reserved, so that the other questions have
lm-eval's prompts. Tasks whose examples come from another split are unchanged.
"""

import copy
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby, islice
from threading import RLock
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.samplers import FirstNSampler
from lm_eval.defaults import DEFAULT_OTHER_SEED, DEFAULT_RANDOM_SEED
from lm_eval.evaluator_utils import get_sample_size

from broca.errors import BadInput, TaskUnusable, nearest
from broca.options import LENGTH_NAMES, NEW_TOKENS, TaskOptions
from broca.tasks.code import executes_code
from broca.tasks.documents import Document, PreparedTask, question_texts
from broca.tasks.items import FEWEST, Request, seed_of
from broca.tasks.metrics import choose_metric
from broca.tasks.sandbox import ISOLATION
from broca.tasks.tokenizer import RequestTokenizer

_MOST_LOCATE_DOCUMENTS = 2000

_in_harness = RLock()


@contextmanager
def as_in_harness() -> Iterator[None]:
    """A context for code of lm-eval: seeded as by its `simple_evaluate`, without its warnings.

    Tasks such as GPQA's shuffle their choices by Python's generator. Afterwards the generators of
    Python and NumPy, and the level of lm-eval's logger, are the caller's again. It is open to one
    thread at a time, for these and what reading a task replaces (`code_tasks`, `fetching`) belong
    to the process.
    """
    with _in_harness, ExitStack() as restored:
        restored.callback(random.setstate, random.getstate())
        restored.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        logger = logging.getLogger("lm_eval")
        restored.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.ERROR)
        random.seed(DEFAULT_RANDOM_SEED)
        np.random.seed(DEFAULT_OTHER_SEED)  # noqa: NPY002
        yield


def prepare(
    task: Any,
    tokenizer: RequestTokenizer,
    options: TaskOptions,
    *,
    metric: str | None,
    require_split: bool,
) -> tuple[PreparedTask, list[Document], list[str]]:
    """Builds and tokenizes every request of a harness task.

    Args:
        task: A loaded `lm_eval.api.task.Task`; its settings are changed.
        tokenizer: Tokenizer of requests for the model.
        options: Options of the task.
        metric: The metric, as for `choose_metric`.
        require_split: Whether a task without the locate split is refused; otherwise its scored
            documents are used for all parts.

    Returns:
        The task, its documents, those of the locate split last, and notes for the reader.

    Raises:
        BadInput: A chat template is requested and the tokenizer has none.
        TaskUnusable: The task has no items that can be scored, no such metric or split, too few
            examples, or unsupported requests.
    """
    name, chosen = task.task_name, choose_metric(task, metric)
    notes: list[str] = []
    stated, fewshot = task.get_config("num_fewshot"), options.num_fewshot
    if fewshot and stated == 0:
        notes.append(f"{name} is always asked without solved examples, as in lm-eval")
    else:
        task.set_config("num_fewshot", (stated or 0) if fewshot is None else fewshot)
    if task.OUTPUT_TYPE == "generate_until" and (replaced := options.generation):
        settings = dict(task.config.generation_kwargs or {})
        if NEW_TOKENS in replaced:
            settings = {key: settings[key] for key in settings if key not in LENGTH_NAMES}
        task.set_config("generation_kwargs", {**settings, **replaced})
    if executes_code(task):
        notes.append(f"{name} executes what the model writes, within {ISOLATION}")
    own_split = (task.config.metadata or {}).get("locate_split")
    scored, locate = _splits(task, options.locate_split or own_split)
    if options.locate_split is not None and locate is None:
        if require_split:
            require_locate_split(task, options.locate_split)
        notes.append(
            f"{name} has no split {options.locate_split} besides the scored one, which gives the "
            "items of the search too"
        )
    chat: Callable[..., str] | None = None
    delimiter = str(task.config.target_delimiter)
    if options.chat_template:
        tokenizer.require_chat_template()
        chat, prefix = tokenizer.chat, task.get_config("gen_prefix")
        # an answer is a turn of its own, unless it goes on from the prefix of one
        delimiter = delimiter if prefix and not prefix[-1:].isspace() else ""
    excluded, note = _keep_apart(task, [scored, locate])
    notes += [note] if note else []
    groups = [
        (scored or "", group[0].doc_id, False, group)
        for group in _built(task, options, chat, limit=get_sample_size(task, options.limit))
        if not excluded or _document_key(task, group[0].doc) not in excluded
    ]
    if locate is not None:
        scored_keys = {_document_key(task, group[0].doc) for *_, group in groups}
        twin, places = _on_split(task, locate, excluded | scored_keys)
        located = _built(twin, options, chat, limit=None)
        groups += [(locate, places[group[0].doc_id], True, group) for group in located]
    prepared = PreparedTask(name, chosen, delimiter, task)
    documents: list[Document] = []
    reasons: Counter[str] = Counter()
    for split, place, is_located, group in groups:
        requests, reason = _requests_of(group, tokenizer)
        if reason:
            reasons[reason] += 1
        else:
            documents.append(
                Document(prepared, len(documents), split, int(place), is_located, group, requests)
            )
    if all(document.located for document in documents):
        reason = next(iter(reasons), "all of them ask the same as the solved examples")
        raise TaskUnusable(f"no item of task '{name}' can be scored: {reason}")
    for reason, count in reasons.items():
        notes.append(f"{count} of {len(groups)} items of {name} were left out: {reason}")
    notes += tokenizer.prompt_notes(name)
    if task.OUTPUT_TYPE == "generate_until":
        notes += tokenizer.generation_notes(name, task.config.generation_kwargs or {})
    return prepared, documents, notes


def _requests_of(
    group: Sequence[Instance], tokenizer: RequestTokenizer
) -> tuple[tuple[tuple[Request, ...], ...], str]:
    """Returns the requests of a document, and why they cannot be scored; empty if they can."""
    try:
        requests = tuple(map(tokenizer.requests, group))
    except TaskUnusable:
        raise
    except BadInput as error:
        return (), str(error)
    if not all(requests):
        return (), "their targets have no tokens of their own, so that there is nothing to score"
    return requests, ""


def _built(
    task: Any, options: TaskOptions, chat: Callable[..., str] | None, *, limit: int | None
) -> list[tuple[Instance, ...]]:
    """Builds the requests of every document."""
    task.set_fewshot_seed(DEFAULT_OTHER_SEED)
    try:
        task.build_all_requests(
            limit=limit, system_instruction=options.system_prompt, chat_template=chat,
            apply_chat_template=chat is not None,
            fewshot_as_multiturn=options.fewshot_as_multiturn,
        )  # fmt: skip
    except ValueError as error:
        raise TaskUnusable(f"task '{task.task_name}' has no items: {error}") from error
    ordered = sorted(task.instances, key=lambda instance: (instance.doc_id, instance.idx))
    return [tuple(group) for _, group in groupby(ordered, lambda instance: instance.doc_id)]


def _splits(task: Any, locate_split: str | None) -> tuple[str | None, str | None]:
    """Returns the names of the scored split and of the requested locate split."""
    config = task.config
    scored = config.test_split or config.validation_split
    if locate_split is None:
        return scored, None
    kind = "training" if locate_split == "train" else locate_split
    name = getattr(config, f"{kind}_split", None) or locate_split
    dataset = getattr(task, "dataset", None) or {}
    return scored, name if name in dataset and name != scored else None


def require_locate_split(task: Any, split: str) -> None:
    """Refuses a locate split that a task does not have besides the scored split.

    Raises:
        TaskUnusable: The task has no such split.
    """
    scored, locate = _splits(task, split)
    if locate is None:
        others = [str(name) for name in getattr(task, "dataset", None) or {} if name != scored]
        raise TaskUnusable(
            f"`locate_split`: task '{task.task_name}' has no split '{split}' beside the scored one "
            f"({scored}){nearest(split, others)}: "
            + (f"it has {', '.join(others)}" if others else "leave the option out")
        )


def _on_split(task: Any, split: str, excluded: frozenset[str]) -> tuple[Any, list[int]]:
    """Returns the task on documents of another split, drawn by its name, and their positions."""
    documents = task.dataset[split]
    if task.config.process_docs is not None:
        documents = task.config.process_docs(documents)
    order = np.random.default_rng(seed_of(task.task_name)).permutation(len(documents))
    free = (p for p in order.tolist() if _document_key(task, documents[p]) not in excluded)
    chosen = sorted(islice(free, _MOST_LOCATE_DOCUMENTS))
    twin = copy.copy(task)
    twin._config = copy.copy(task._config)
    twin._config.process_docs = None
    twin._config.test_split = split
    twin.dataset = {split: [documents[position] for position in chosen]}
    return twin, chosen


def _keep_apart(
    task: Any, scored_splits: Sequence[str | None]
) -> tuple[frozenset[str], str | None]:
    """Makes sure that no example is a scored item.

    Args:
        task: A loaded harness task whose number of examples is set; its sampler may be changed.
        scored_splits: Official splits of the items.

    Returns:
        Keys of the documents that must not be items (see `_document_key`), and a note on them.

    Raises:
        TaskUnusable: There are fewer documents than examples.
    """
    count = task.config.num_fewshot or 0
    if count == 0:
        return frozenset(), None
    if getattr(task, "sampler", None) is None:
        raise TaskUnusable(
            f"task '{task.task_name}' chooses its examples with its own code: set `num_fewshot` "
            "to 0, so that none is a scored item"
        )
    pool, config, split = list(task.sampler.df), task.config, task.fewshot_cfg.split
    written = split is None and task.fewshot_cfg.samples is not None
    if split is None and not written:
        split = config.training_split or config.validation_split or config.test_split
    shared, first = not written and split in scored_splits, isinstance(task.sampler, FirstNSampler)
    # lm-eval draws one more than needed if examples and items share a split, or name none
    more = shared or (not first and task.fewshot_cfg.split == config.test_split)
    available = len(pool) - more - (FEWEST if shared and not first else 0)
    if count > available:
        raise TaskUnusable(
            f"`num_fewshot` {count} is more than the {max(available, 0)} examples that task "
            f"'{task.task_name}' has: use fewer"
        )
    if written:  # perhaps copied from scored documents
        complete = [d for d in pool if isinstance(d, dict) and set(task.features) <= set(d)]
        return frozenset(_document_key(task, document) for document in complete), None
    if not shared:
        return frozenset(), None
    if first:
        reserved = pool[:count]  # the pool stays whole: lm-eval removes the question from it
    else:
        size = max(count + 1, min(10 * count, len(pool) // 10))
        rng = np.random.default_rng(seed_of(task.task_name))
        reserved = [pool[position] for position in sorted(rng.permutation(len(pool))[:size])]
        task.sampler.replace_df(reserved)
    return frozenset(_document_key(task, document) for document in reserved), (
        f"{len(reserved)} documents of {task.task_name} served as solved examples only: "
        f"examples and items come from the same split ({split})"
    )


def _document_key(task: Any, document: Any) -> str:
    """Returns question and target of a document, which are equal for its copies."""
    choices = task.doc_to_choice(document) if task.config.doc_to_choice is not None else None
    return repr((question_texts(task, document), choices, task.doc_to_target(document)))
