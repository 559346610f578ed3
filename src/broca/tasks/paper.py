"""The tasks of the compressed-sensing paper, with the metrics that it reports.

From Bair, Xu, Sun and Kolter (arXiv 2603.03335). All are tasks of lm-eval, with its default number
of examples; `docs/paper-tasks.md` describes the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from broca.results.tasks import PaperTask

_TABLE = (
    PaperTask("gsm8k", "exact_match,flexible-extract", "math", "openai/gsm8k"),
    PaperTask("arithmetic", "acc", "math", "EleutherAI/arithmetic"),
    PaperTask("mbpp", "pass_at_1", "code", "google-research-datasets/mbpp", executes_code=True),
    PaperTask(
        "humaneval_instruct", "pass@1", "code", "openai/openai_humaneval", executes_code=True
    ),
    PaperTask("hellaswag", "acc_norm", "general", "Rowan/hellaswag"),
    PaperTask("boolq", "acc", "general", "aps/super_glue"),
    PaperTask("arc_challenge", "acc_norm", "general", "allenai/ai2_arc"),
    PaperTask("mmlu", "acc", "general", "cais/mmlu"),
    PaperTask("wmdp_bio", "acc", "hazardous knowledge", "cais/wmdp"),
    PaperTask("wmdp_chem", "acc", "hazardous knowledge", "cais/wmdp"),
    PaperTask("wmdp_cyber", "acc", "hazardous knowledge", "cais/wmdp"),
)

PAPER_TASKS: Mapping[str, PaperTask] = MappingProxyType({task.name: task for task in _TABLE})
"""The tasks by name. Their metric is the default of such a task."""

PAPER_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"general": ("hellaswag", "boolq", "arc_challenge", "mmlu")}
)
"""Groups that the paper scores by the mean over their members, each in its own metric."""
