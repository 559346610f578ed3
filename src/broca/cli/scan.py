"""`broca scan`: what can be ablated in a model, and whether the gates hold."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict

import typer

from broca.cli.model_options import AllowPickle, Components, Device, DType, Model
from broca.cli.run_options import Json


def scan(
    model: Model,
    components: Components = "heads",
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
) -> None:
    """Print the components of MODEL, what is not covered and why, and the self-test."""
    from broca.models import load, self_test

    loaded = load(
        model, dtype=dtype, device=device, components=components, allow_pickle=allow_pickle
    )
    checks = self_test(loaded)
    if json:
        data = {
            "model": loaded.name,
            "architecture": loaded.architecture,
            "fingerprint": loaded.fingerprint,
            "dtype": loaded.dtype,
            "layers": loaded.structure.layers,
            "kinds": loaded.kinds,
            "heads": loaded.heads,
            "kv_heads": loaded.kv_heads,
            "components": list(loaded.components.names),
            "norms_across_heads": [
                one.norm.path for one in loaded.structure.projections if one.norm is not None
            ],
            "gate_points": [point.path for point in loaded.points],
            "not_covered": [asdict(one) for one in loaded.structure.not_covered],
            "self_test": [asdict(check) for check in checks],
        }
        sys.stdout.write(json_format.dumps(data, indent=2) + "\n")
        return
    typer.echo(loaded.describe())
    names = loaded.components.names
    typer.echo(f"{len(names)} components ({loaded.kinds}): {names[0]} ... {names[-1]}")
    typer.echo(f"gated at: {loaded.points[0].path} ... {loaded.points[-1].path}")
    norms = [one.norm.path for one in loaded.structure.projections if one.norm is not None]
    if norms:
        typer.echo(
            f"a norm over all heads lies before the projection ({norms[0]}, ...): heads are gated "
            "at its input"
        )
    for part in loaded.structure.parts:
        if part.feed_forward is None:
            typer.echo(f"no single MLP block: layer {part.layer} ({part.whole.path})")
    for one in loaded.structure.not_covered:
        typer.echo(f"not covered: layer {one.layer} ({one.path}): {one.reason}")
    for check in checks:
        verdict = "ok" if check.passed else "FAILED"
        typer.echo(f"self-test {verdict}: {check.name} ({check.detail}), {check.seconds:.2f} s")
