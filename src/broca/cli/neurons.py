"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

import shlex
from collections.abc import Callable
from typing import Any

from broca.cli.commands import make_app
from broca.cli.keeping import SharedOutput, keep
from broca.options import EraseOptions, LocateOptions


def _command(verb: str, cls: Any) -> Callable[..., None]:
    """Makes the command of a verb, whose help is that of its options; results share a folder."""

    def run(options: Any, *, out: str = "broca-neurons", output: Any = SharedOutput()) -> None:
        then = f"broca view {shlex.quote(out)}"
        keep(f"neurons.{verb}", options, out, output, then=then, page=0)

    run.__name__ = verb
    run.__annotations__ |= {"options": cls, "output": SharedOutput, "out": str}
    run.__doc__ = f"{cls.__doc__}\n\nArgs:\n    out: Folder for results; measured rows are reused."
    return run


app = make_app(
    "neurons",
    "Find the feed-forward neurons that carry what a data set has in common, and test them.",
    {"Commands": [_command("locate", LocateOptions), _command("erase", EraseOptions)]},
)
