"""`broca stress`: what kind of role does a set of heads have?"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from broca.cli.model_options import AllowPickle, Device, DType
from broca.cli.progress import ProgressLine
from broca.cli.run_options import Plain, Seed
from broca.errors import BadInput


def stress(
    target: Annotated[str, typer.Argument(help="The out folder of a run; with --heads, a model.")],
    heads: Annotated[
        str | None, typer.Option(help="Heads, L0H4+L1H8, or published:MODEL/TASK/METHOD.")
    ] = None,
    family: Annotated[
        str, typer.Option(help="Prompts with two operations: letters, or a YAML file.")
    ] = "letters",
    control: Annotated[
        list[str] | None,
        typer.Option(help="A control family: sums, or a YAML file; may be repeated."),
    ] = None,
    pairs: Annotated[int, typer.Option(help="Pairs of a source and a target.")] = 48,
    seed: Seed = 0,
    out: Annotated[
        str | None, typer.Option(help="Folder for stress.json; default: the run's, or broca-out.")
    ] = None,
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Annotated[bool, typer.Option("--json", help="Print stress.json on stdout.")] = False,
    plain: Plain = False,
) -> None:
    """Test necessity, decodability, reversal and transfer of some heads, with controls."""
    from broca.models import load
    from broca.reports import write
    from broca.reports.filling import interval_text
    from broca.results.codec import encode
    from broca.results.files import check_out_folder
    from broca.results.localization import Localization
    from broca.stress_tests.families import load_family
    from broca.stress_tests.keeping import NAME
    from broca.stress_tests.measure import stress as run
    from broca.verbs.verify import named_heads

    if pairs < 16:
        raise BadInput(f"--pairs must be at least 16, not {pairs}")
    name, chosen, result = target, heads or "", None
    if heads is None:
        result = Localization.read(target)
        name, chosen = result.model.name, "+".join(result.selected)
        if not result.selected:
            raise BadInput(f"the run in '{target}' selected nothing: name heads with --heads")
    families = [load_family(one) for one in (family, *(control or ["sums"]))]
    folder = check_out_folder(out or (target if heads is None else "broca-out"))
    progress = ProgressLine(plain=plain)
    try:
        progress("loading the model", None)
        model = load(name, dtype=dtype, device=device, allow_pickle=allow_pickle)
        measured = run(
            model,
            named_heads(model, chosen),
            families[0],
            controls=families[1:],
            count=pairs,
            seed=seed,
            keep=folder / NAME,
            report=lambda text: progress(text, None),
        )
    finally:
        progress.close()
    write(measured, folder, run=result)
    if json:
        sys.stdout.write(encode(measured))
        return
    for shift in measured.shifts:
        typer.echo(f"write {shift.source}: {interval_text(shift.transfer)} nats")
    for one in measured.necessity:
        typer.echo(
            f"{one.ablation} ablation: drop {interval_text(one.drop)} nats, selective "
            f"{one.selective:+.2f}, rank {one.rank} of {len(one.null) + 1}"
        )
    if measured.probe is not None:
        typer.echo(
            f"probe {measured.probe.accuracy:.2f} (shuffled {measured.probe.shuffled:.2f}, "
            f"surface {measured.probe.surface:.2f}, chance {measured.probe.chance:.2f})"
        )
    for part in measured.reversals:
        typer.echo(f"restoring {part.part} undoes {interval_text(part.share)} of the damage")
    typer.echo(f"positive control {interval_text(measured.positive_control)} nats")
    typer.echo(f"{measured.verdict}: {measured.text}")
    typer.echo(f"report: {folder / 'stress.html'}")
