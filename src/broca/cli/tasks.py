"""`broca tasks`: lists the tasks, or shows how a task is prompted and scored."""

from __future__ import annotations

from broca.cli.commands import command
from broca.cli.output import print_result
from broca.cli.wording import say
from broca.options import SourceOptions, TaskOptions


@command
def tasks(
    name: str | None = None,
    /,
    *,
    model: str = "reference",
    json: bool = False,
    source_options: SourceOptions,
    task_options: TaskOptions,
) -> None:
    """List the tasks of the package, of the paper and of a folder, or show the prompts of a task.

    Args:
        name: A task or group to show; without a name, tasks are listed.
        model: Model whose tokenizer and context length are used.
    """
    import broca

    folder = source_options.include_path
    if name is None:
        tasks = broca.list_tasks(include_path=folder)
        if json:
            print_result(tasks)
            return
        say(*tasks.shipped)
        say(*(f"{task} (for chat models)" for task in tasks.instruct))
        say(*(f"{task} (from {folder})" for task in tasks.included))
        say(*(f"{group} (group from {folder})" for group in tasks.included_groups))
        for task in tasks.paper:
            code = ", --allow-code" if task.executes_code else ""
            say(f"{task.name} (lm-eval's, {task.skill}: {task.metric}{code})")
        for group, members in tasks.groups.items():
            say(f"{group} (for --others: {', '.join(members)})")
        return
    description = broca.describe_task(
        name, model=model, source_options=source_options, task_options=task_options
    )
    if json:
        print_result(description)
        return
    for key, value in description.records()[0].items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        say(f"{key.replace('_', ' ')}: {text}")
