"""The options that say how a model is loaded, shared by the verbs that load one."""

from __future__ import annotations

from typing import Annotated

import typer

AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load weights in pickle format (tensors alone).")
]
