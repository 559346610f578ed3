"""`broca scan`: what can be ablated in a model, and whether the gates hold."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated

import typer


def scan(
    model: Annotated[str, typer.Argument(help="reference, planted, a model folder or a hub id.")],
    dtype: Annotated[
        str, typer.Option(help="float32, bfloat16, float16, or auto (float32 on a CPU).")
    ] = "auto",
    device: Annotated[str | None, typer.Option(help="Device, such as cpu or cuda:0.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Print the components of MODEL, what is not covered and why, and the self-test."""
    from broca.models import load, self_test

    loaded = load(model, dtype=dtype, device=device)
    checks = self_test(loaded)
    if json:
        data = {
            "model": loaded.name,
            "architecture": loaded.architecture,
            "fingerprint": loaded.fingerprint,
            "dtype": loaded.dtype,
            "layers": loaded.structure.layers,
            "heads": loaded.heads,
            "kv_heads": loaded.kv_heads,
            "components": list(loaded.components.names),
            "projections": [point.path for point in loaded.points],
            "not_covered": [asdict(one) for one in loaded.structure.not_covered],
            "self_test": [asdict(check) for check in checks],
        }
        sys.stdout.write(json_format.dumps(data, indent=2) + "\n")
        return
    typer.echo(loaded.describe())
    first, last = loaded.points[0], loaded.points[-1]
    typer.echo(f"output projections: {first.path} ... {last.path}, {first.width} columns a head")
    for one in loaded.structure.not_covered:
        typer.echo(f"not covered: layer {one.layer} ({one.path}): {one.reason}")
    for check in checks:
        verdict = "ok" if check.passed else "FAILED"
        typer.echo(f"self-test {verdict}: {check.name} ({check.detail}), {check.seconds:.2f} s")
