"""Commands that answer before a run: this machine, tasks, models, costs, published lists."""

from contextlib import closing
from dataclasses import asdict, field
from typing import Any

from broca.cli.output import print_json, show
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.cli.wording import say
from broca.errors import BadInput, CannotRun
from broca.options import DescribeTaskOptions, PlanOptions, ScanOptions, SourceOptions


def doctor(*, prints: PrintOptions = PrintOptions()) -> None:
    """Check versions, devices, isolation and extras; print how to mend it."""
    with closing(ProgressDisplay(prints)):
        import broca

        diagnosis = broca.doctor()
    show(diagnosis, None, json=prints.json)
    broken = [check.name for check in diagnosis.checks if check.state == "broken"]
    if broken:
        raise CannotRun(f"broca cannot run here ({', '.join(broken)}): follow the advice after ->")


class ShownTask(DescribeTaskOptions):
    """The options of `tasks`: of `describe_task` with a task, of `list_tasks` without one."""

    task: Any = field(default=None, kw_only=False)


def tasks(options: ShownTask = ShownTask(), *, json: bool = False) -> None:
    """List the tasks of the package, of the paper and of a folder, or show the prompts of a task.

    Args:
        json: Print JSON on stdout.
    """
    import broca

    if options.task is None:
        path = options.source_options.include_path
        if options != ShownTask(source_options=SourceOptions(include_path=path)):
            raise BadInput(
                "these options are those of one task: name it, as in `broca tasks gsm8k`"
            )
        tasks = broca.list_tasks(include_path=path)
        show(tasks, None, json=json)
    else:
        show(broca.describe_task(settings=options), None, json=json)


def scan(options: ScanOptions, *, prints: PrintOptions = PrintOptions()) -> None:
    """Print the components of MODEL, what is not covered and why, and the self-test."""
    import broca

    with closing(ProgressDisplay(prints)) as progress:
        result = broca.scan(settings=options, on_progress=progress)
    show(result, None, json=prints.json)


def plan(options: PlanOptions, *, prints: PrintOptions = PrintOptions()) -> None:
    """Print the rows, tokens and time of every method on MODEL, from a few timed rows."""
    import broca

    with closing(ProgressDisplay(prints)) as progress:
        result = broca.plan(settings=options, on_progress=progress)
    show(result, None, json=prints.json)


def published(*, model: str | None = None, json: bool = False) -> None:
    """List published head lists; --heads of verify, stress, export and chat accepts their names.

    Args:
        model: Only lists of this model, such as llama-3.1-8b.
    """
    import broca
    from broca.published import notes

    lists = broca.published_lists(model)
    if json:
        print_json([{"name": heads.name, **asdict(heads)} for heads in lists])
        return
    width = max(len(heads.name) for heads in lists)
    say(*(f"{heads.name:<{width}}  {' '.join(heads.heads)}" for heads in lists))
    say(*(f"note: {note}" for note in notes()))
