"""Shipped tasks of the capabilities that rely on planted heads in the model `planted`."""

TASKS = {
    "arithmetic": "addition", "reversing": "reversing", "sorting": "sorting", "code": "calls",
    "rhyming": "rhyming", "facts": "capitals",
}  # fmt: skip
"""One task for each capability."""

LEARNED = {task: capability for capability, task in TASKS.items()}
"""The capability of each task."""
