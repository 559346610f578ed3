"""The options that say which model is loaded and how, shared by the verbs that load one."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="reference, planted, a model folder or a hub id.")]
Components = Annotated[
    str,
    typer.Option(help="heads, kv-groups, attention, mlp, layers, experts, neurons, joined by +."),
]
ComponentsButNeurons = Annotated[
    str, typer.Option(help="heads, kv-groups, attention, mlp, layers, experts, joined by +.")
]
DType = Annotated[str, typer.Option(help="float32, bfloat16, float16, or auto (float32 on a CPU).")]
Device = Annotated[str | None, typer.Option(help="Device, such as cpu or cuda:0.")]
DeviceMap = Annotated[str | None, typer.Option(help="auto spreads the model over all devices.")]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load weights in pickle format (tensors alone).")
]
