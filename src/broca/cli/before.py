"""Commands that answer before a run: this machine, tasks, models, costs, published lists."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from broca.cli.output import console, print_json, print_result, print_table
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.cli.wording import duration, say
from broca.errors import CannotRun
from broca.options import (
    DescribeTaskOptions,
    PlanOptions,
    ScanOptions,
)

if TYPE_CHECKING:
    from broca.results.runs import MethodCost

MARKS = {"ok": "ok", "missing": "--", "broken": "!!"}
"""The marks of the states of a check."""


def doctor(*, prints: PrintOptions = PrintOptions()) -> None:
    """Check versions, devices, isolation, extras, memory and disk; print how to mend it."""
    with closing(ProgressDisplay(prints)):
        import broca

        diagnosis = broca.doctor()
    if prints.json:
        print_result(diagnosis)
    else:
        width = max(len(check.name) for check in diagnosis.checks)
        for check in diagnosis.checks:
            say(f"{MARKS[check.state]}  {check.name:<{width}}  {check.description}")
            if check.remedy:
                say(f"    {'':<{width}}  -> {check.remedy}")
    broken = [check.name for check in diagnosis.checks if check.state == "broken"]
    if broken:
        raise CannotRun(f"broca cannot run here ({', '.join(broken)}): follow the advice after ->")
    if not prints.json:
        say("broca can run here; features marked -- are optional.")


@dataclass(frozen=True)
class ShownTask(DescribeTaskOptions):
    """The options of `tasks`: of `describe_task` with a task, of `list_tasks` without one."""

    task: Any = None


def tasks(options: ShownTask = ShownTask(), *, json: bool = False) -> None:
    """List the tasks of the package, of the paper and of a folder, or show the prompts of a task.

    Args:
        json: Print JSON on stdout.
    """
    import broca

    folder = options.source_options.include_path
    if options.task is None:
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
    description = broca.describe_task(settings=options)
    if json:
        print_result(description)
        return
    for key, value in description.records()[0].items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        say(f"{key.replace('_', ' ')}: {text}")


def scan(options: ScanOptions, *, prints: PrintOptions = PrintOptions()) -> None:
    """Print the components of MODEL, what is not covered and why, and the self-test."""
    import broca

    with closing(ProgressDisplay(prints)) as progress:
        result = broca.scan(settings=replace(options, on_progress=progress))
    if prints.json:
        print_result(result)
        return
    names, points, norms = result.components, result.gate_points, result.norms_across_heads
    say(
        result.description,
        f"{len(names)} components ({result.kinds}): {names[0]} ... {names[-1]}",
        f"gated at: {points[0]} ... {points[-1]}",
    )
    if norms:
        say(
            f"a norm over all heads precedes the projection ({norms[0]}, ...): heads are gated "
            "at its input"
        )
    for layer, path in result.without_mlp_block:
        say(f"no single MLP block: layer {layer} ({path})")
    for gap in result.not_covered:
        say(f"not covered: layer {gap.layer} ({gap.path}): {gap.reason}")
    for check in result.self_test:
        state = "ok" if check.passed else "FAILED"
        say(f"self-test {state}: {check.name} ({check.detail}), {check.seconds:.2f} s")
    for check in result.sharing:
        state = "shared" if check.passed else "not shared"
        say(f"{state}, for rows up to {result.proved_tokens} tokens: {check.name} ({check.detail})")


def plan(options: PlanOptions, *, prints: PrintOptions = PrintOptions()) -> None:
    """Print the rows, tokens and time of every method on MODEL, from a few timed rows."""
    import broca

    with closing(ProgressDisplay(prints)) as progress:
        run_options = replace(options.run_options, on_progress=progress)
        result = broca.plan(settings=replace(options, run_options=run_options))
    if prints.json:
        print_result(result)
        return
    from broca.results.pages.tables import Column, Table

    def known(name: str) -> Callable[[MethodCost], Any]:
        return lambda method: None if method.problem else getattr(method, name)

    screen = console()
    title = f"search for {result.task} in {result.model.name}: {result.components} components"
    print_table(screen, Table.of(
        "methods", title, result.methods,
        Column("method"), Column("response", lambda method: method.problem or method.response),
        Column("rows", known("rows")), Column("tokens", known("tokens")),
        Column("time", known("seconds"), duration),
    ))  # fmt: skip
    screen.print(
        f"from {result.timed_rows} timed rows; rows that share work take less; the verification "
        f"measures {result.proof_rows:,} rows and more; memory held so far: "
        f"{result.memory_bytes / 2**30:.1f} GiB",
        markup=False,
    )


def published(*, model: str | None = None, json: bool = False) -> None:
    """List published head lists; --heads of every command accepts their names.

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
