"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

import shlex
from collections.abc import Callable
from typing import Any

from broca.cli.commands import make_app
from broca.cli.keeping import SharedOutput, kept_result
from broca.cli.output import show
from broca.options import EraseOptions, LocateOptions


def _command(verb: str, cls: Any) -> Callable[..., None]:
    """Makes the command of a verb, whose help is that of its options; results share a folder."""

    def run(options: Any, *, out: str = "broca-neurons", output: Any = SharedOutput()) -> None:
        from broca.results.neurons import Erasure, NeuronSet

        kind: Any = NeuronSet if verb == "locate" else Erasure
        result, files = kept_result(kind, f"neurons.{verb}", options, out, output)
        show(
            result, files[0], json=output.print_options.json, details=output.details,
            then=f"broca view {shlex.quote(out)}",
        )  # fmt: skip

    run.__name__ = verb
    run.__annotations__ |= {"options": cls, "output": SharedOutput, "out": str}
    run.__doc__ = f"{cls.__doc__}\n\nArgs:\n    out: Folder for results; measured rows are reused."
    return run


app = make_app(
    "neurons",
    "Find the feed-forward neurons that carry what a data set has in common, and test them.",
    {
        verb: _command(verb, cls)
        for verb, cls in {"locate": LocateOptions, "erase": EraseOptions}.items()
    },
)
