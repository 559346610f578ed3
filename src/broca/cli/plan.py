"""`broca plan`: estimates the cost of every method on this machine."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from broca.cli.commands import PrintOptions, command_of
from broca.cli.output import console, print_result, print_table
from broca.cli.progress import ProgressDisplay


@command_of("broca.verbs.plan:plan")
def plan(*, print_options: PrintOptions, **parameters: Any) -> None:
    """Print the rows, tokens and time of every method on MODEL, from a few timed rows.

    Args:
        rows: Maximum number of rows of a search; default: as many as each method needs.
        sample: Number of rows to time for each response.
        journal: A journal that keeps the timing; default: none, and the timing is made anew.
    """
    import broca

    with closing(ProgressDisplay(print_options)) as progress:
        result = broca.plan(**parameters, on_progress=progress)
    if print_options.json:
        print_result(result)
        return
    screen = console()
    print_table(
        screen,
        f"search for {result.task} in {result.model.name}: {result.components} components",
        "method|response|rows|tokens|time",
        (
            (method.method, method.problem, "", "", "")
            if method.problem
            else (
                method.method,
                method.response,
                f"{method.rows:,}",
                f"{method.tokens:,}",
                _duration(method.seconds),
            )
            for method in result.methods
        ),
        left=2,
    )
    screen.print(
        f"from {result.timed_rows} timed rows; rows that share work take less; the verification "
        f"measures {result.proof_rows:,} rows and more; memory held so far: "
        f"{result.memory_bytes / 2**30:.1f} GiB",
        markup=False,
    )


def _duration(seconds: float) -> str:
    """Returns a time in seconds, minutes or hours, with one decimal."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
