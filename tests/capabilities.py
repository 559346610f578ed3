"""What the shipped models can do, and which of it `planted` was taught."""

TASKS = {
    "arithmetic": "addition",
    "reversing": "reversing",
    "sorting": "sorting",
    "code": "calls",
    "rhyming": "rhyming",
    "facts": "capitals",
}
"""A task of every capability that relies on planted heads."""

LEARNED = {task: capability for capability, task in TASKS.items()}
"""The capability of each of these tasks."""
