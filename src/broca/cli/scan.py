"""`broca scan`: what can be ablated in a model, and whether the gates hold."""

from __future__ import annotations

from dataclasses import asdict

from broca.cli.commands import command
from broca.cli.output import print_json
from broca.cli.wording import say
from broca.options import ModelOptions


@command
def scan(model: str, /, *, json: bool = False, model_options: ModelOptions) -> None:
    """Print the components of MODEL, what is not covered and why, and the self-test."""
    from broca.models import load, self_test

    gated = load(model, **asdict(model_options))
    checks = self_test(gated)
    structure, names = gated.structure, gated.components.names
    norms = [projection.norm.path for projection in structure.projections if projection.norm]
    if json:
        print_json(
            {
                "model": gated.name,
                "architecture": gated.architecture,
                "fingerprint": gated.fingerprint,
                "dtype": gated.dtype,
                "layers": structure.layers,
                "kinds": gated.kinds,
                "heads": gated.heads,
                "kv_heads": gated.kv_heads,
                "components": list(names),
                "norms_across_heads": norms,
                "gate_points": [point.path for point in gated.points],
                "not_covered": [asdict(part) for part in structure.not_covered],
                "self_test": [asdict(check) for check in checks],
            }
        )
        return
    say(
        gated.describe(),
        f"{len(names)} components ({gated.kinds}): {names[0]} ... {names[-1]}",
        f"gated at: {gated.points[0].path} ... {gated.points[-1].path}",
    )
    if norms:
        say(
            f"a norm over all heads lies before the projection ({norms[0]}, ...): heads are gated "
            "at its input"
        )
    for part in structure.parts:
        if part.feed_forward is None:
            say(f"no single MLP block: layer {part.layer} ({part.whole.path})")
    for gap in structure.not_covered:
        say(f"not covered: layer {gap.layer} ({gap.path}): {gap.reason}")
    for check in checks:
        state = "ok" if check.passed else "FAILED"
        say(f"self-test {state}: {check.name} ({check.detail}), {check.seconds:.2f} s")
