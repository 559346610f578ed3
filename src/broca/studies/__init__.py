"""Repeats the paper's tables and figures on any model and tasks, beside the published figures."""

NAMES = {
    "table2": "what the selected heads cost their task, and what they cost in general",
    "table3": "heads found on one task, measured on others of the same skill",
    "table4": "the methods: degradation, and what the search took",
    "table5": "universal heads, by skill",
    "table6": "the first k heads, k from 0 to 5",
    "table7": "universal heads, task by task",
    "table8": "heads that several knowledge tasks share, task by task",
    "table9": "the head lists",
    "figure1": "every task under each skill's heads",
    "figure2": "the first k heads, k from 0 to 10: the task, its skill, the others",
    "figure3": "the shared knowledge heads on knowledge and on the rest",
    "figure4": "each knowledge task's own heads on every knowledge task",
    "scale": "the same tasks over models: degradation against size",
}
"""Each table and figure, with a description."""

ALL = "all"
"""The name that stands for all of them."""
