"""Exports models without some components in forms that other libraries load."""

from broca.exports.adapter import require_peft, write_adapter
from broca.exports.card import PICTURE, card
from broca.exports.checking import (
    PromptAnswers,
    ablated_answers,
    answers,
    compare_answers,
    prompt_tokens,
)
from broca.exports.factors import factors_of
from broca.exports.head_list import head_list, write_head_list
from broca.exports.patch import Patch, read_patch, write_patch
from broca.exports.picture import picture
from broca.exports.pushing import upload
from broca.exports.reloading import LIBRARIES, Origin, reload
from broca.exports.requests import Exportable, ExportRequest
from broca.exports.scoring import (
    ablated_score,
    checked_benchmark,
    checked_task,
    compare_scores,
    harness_score,
)
from broca.exports.weights import (
    changed_tensors,
    shard_size,
    with_tensors,
    write_checkpoint,
)
from broca.exports.writing import (
    claimed_folder,
    mean_outputs,
    publish,
    unpublished,
    write_form,
)

__all__ = [
    "LIBRARIES",
    "PICTURE",
    "PromptAnswers",
    "Exportable",
    "Origin",
    "Patch",
    "ExportRequest",
    "ablated_answers",
    "ablated_score",
    "answers",
    "card",
    "changed_tensors",
    "checked_benchmark",
    "checked_task",
    "claimed_folder",
    "compare_answers",
    "compare_scores",
    "factors_of",
    "harness_score",
    "head_list",
    "mean_outputs",
    "picture",
    "prompt_tokens",
    "publish",
    "read_patch",
    "reload",
    "require_peft",
    "shard_size",
    "upload",
    "with_tensors",
    "write_adapter",
    "write_checkpoint",
    "unpublished",
    "write_form",
    "write_head_list",
    "write_patch",
]
