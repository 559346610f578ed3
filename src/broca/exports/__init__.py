"""Exports models without some components in forms that other libraries load."""

from broca.exports.adapter import require_peft
from broca.exports.check import (
    ablated_answers,
    ablated_score,
    answers,
    checked_task,
    compare_answers,
    compare_scores,
    harness_score,
    prompt_tokens,
)
from broca.exports.folder import claimed_folder, publish, unpublished
from broca.exports.forms import LIBRARIES, Origin, mean_outputs, reload, write_form
from broca.exports.request import ExportRequest

__all__ = [
    "LIBRARIES",
    "ExportRequest",
    "Origin",
    "ablated_answers",
    "ablated_score",
    "answers",
    "checked_task",
    "claimed_folder",
    "compare_answers",
    "compare_scores",
    "harness_score",
    "mean_outputs",
    "prompt_tokens",
    "publish",
    "reload",
    "require_peft",
    "unpublished",
    "write_form",
]
