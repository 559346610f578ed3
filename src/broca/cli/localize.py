"""`broca localize`: find the heads, prove them, write the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broca.cli.progress import ProgressLine
from broca.errors import BadInput

if TYPE_CHECKING:
    from broca.result import Result


def localize(
    model: Annotated[str, typer.Argument(help="reference, planted, a model folder or a hub id.")],
    task: Annotated[str, typer.Option(help="The task to localize: shipped, own or lm-eval's.")],
    others: Annotated[
        str,
        typer.Option(help="Tasks the heads should leave alone: T1,T2 or auto or nothing."),
    ] = "auto",
    include_path: Annotated[
        str | None, typer.Option(help="A folder of lm-eval YAML tasks to add.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="one-shot, greedy, cs-bernoulli or cs-stratified.")
    ] = "cs-stratified",
    rows: Annotated[
        int | None,
        typer.Option(help="Most (mask, item) rows of the search; default: what the method needs."),
    ] = None,
    k: Annotated[int, typer.Option(help="Most heads to select.")] = 5,
    items: Annotated[int, typer.Option(help="Most items to search on.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    components: Annotated[
        str,
        typer.Option(
            help="heads, kv-groups, attention, mlp, layers, experts, neurons, joined by +."
        ),
    ] = "heads",
    response: Annotated[
        str, typer.Option(help="What the search measures: accuracy, or the continuous margin.")
    ] = "accuracy",
    ablation: Annotated[
        str, typer.Option(help="What replaces an ablated component: zero, mean or resample.")
    ] = "zero",
    scale: Annotated[
        float, typer.Option(help="Gate of an ablated component; 0 ablates, others scale.")
    ] = 0.0,
    share_prefixes: Annotated[
        str, typer.Option(help="Read shared prompt prefixes once: auto, on or off.")
    ] = "auto",
    reuse_layers: Annotated[
        str, typer.Option(help="Read layers below an ablation once: auto, on or off.")
    ] = "auto",
    token_budget: Annotated[
        int | None, typer.Option(help="Most tokens of a batch; default: from the free memory.")
    ] = None,
    out: Annotated[str, typer.Option(help="Folder for result.json and report.html.")] = "broca-out",
    option: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the method, NAME=VALUE; may be repeated."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="float32, bfloat16, float16, or auto (float32 on a CPU).")
    ] = "auto",
    device: Annotated[str | None, typer.Option(help="Device, such as cpu or cuda:0.")] = None,
    device_map: Annotated[
        str | None, typer.Option(help="auto spreads the model over all devices.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print result.json on stdout.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Progress as plain lines.")] = False,
) -> None:
    """Find the attention heads that MODEL needs for a task, and prove them on held-out items."""
    from broca import api
    from broca.engine import EngineOptions

    api.check_out_folder(out)
    progress = ProgressLine(plain=plain)
    try:
        result = api.localize(
            model,
            task=task,
            others=others,
            include_path=include_path,
            method=method,
            rows=rows,
            k=k,
            items=items,
            seed=seed,
            components=components,
            response=response,  # type: ignore[arg-type]  # checked by localize
            ablation=ablation,  # type: ignore[arg-type]
            scale=scale,
            dtype=dtype,
            device=device,
            device_map=device_map,
            engine_options=EngineOptions(
                token_budget=token_budget,
                share_prefixes=share_prefixes,  # type: ignore[arg-type]
                reuse_layers=reuse_layers,  # type: ignore[arg-type]
            ),
            options=_options(option or []),
            on_progress=progress,
        )
    finally:
        progress.close()
    paths = api.save(result, out)
    if json:
        sys.stdout.write(result.to_json())
    else:
        _print(result, paths)


def _options(pairs: list[str]) -> dict[str, Any]:
    """Reads NAME=VALUE pairs; numbers become numbers."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"--option '{pair}' is not of the form NAME=VALUE")
        value: Any = text
        for number in (int, float):
            try:
                value = number(text)
            except ValueError:
                continue
            break
        options[name.replace("-", "_")] = value
    return options


def _print(result: Result, paths: tuple[Path, Path]) -> None:
    """Prints the before/after table and where the report is."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if result.abstained:
        console.print(f"No heads selected: {result.reason}.", markup=False)
    else:
        heads = ", ".join(result.selected)
        console.print(f"{result.model.name} needs {heads} for {result.task}.", markup=False)
    table = Table(title="report items, intact and with the selected heads ablated")
    for column in ("task", "intact", "ablated", "change"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for name in (result.task, *result.others):
        before, after = result.baseline[name], result.verification.after[name]
        style = "bold" if name == result.task else None
        table.add_row(name, f"{before:.3f}", f"{after:.3f}", f"{after - before:+.3f}", style=style)
    console.print(table)
    proof = result.verification
    if proof.off_target_drop is not None:
        console.print(
            f"drop {proof.drop:.3f}, off-target drop {proof.off_target_drop:.3f}, "
            f"specific drop {proof.specific_drop:.3f}"
        )
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    console.print(
        f"{result.cost.rows:,} rows of search in {result.cost.wall_s:.1f} s; report: {paths[1]}",
        markup=False,
        soft_wrap=True,
    )
