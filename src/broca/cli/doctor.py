"""`broca doctor`: what broca can use on this machine, what is missing, and how to fix it."""

from __future__ import annotations

from contextlib import closing

from broca.cli.commands import PrintOptions, command
from broca.cli.output import print_result
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.errors import CannotRun

MARKS = {"ok": "ok", "missing": "--", "broken": "!!"}
"""The marks of the states of a check."""


@command
def doctor(*, print_options: PrintOptions) -> None:
    """Check versions, devices, isolation, extras, memory and disk; print how to fix each problem.

    Args:
        json: Print the checks as JSON.
    """
    with closing(ProgressDisplay(print_options)):
        import broca

        diagnosis = broca.doctor()
    if print_options.json:
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
    if not print_options.json:
        say("broca can run here; features marked -- are optional.")
