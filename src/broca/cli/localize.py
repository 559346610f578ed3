"""`broca localize`: find the heads, prove them, write the report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broca.cli.keeping import absolute, keeping
from broca.cli.model_options import AllowPickle, Components, Device, DeviceMap, DType, Model
from broca.cli.option_groups import takes_groups
from broca.cli.progress import ProgressLine
from broca.cli.refit import additivity_line
from broca.cli.run_options import (
    Ablation,
    Fresh,
    Items,
    Journal,
    K,
    Plain,
    Resume,
    Scale,
    Seed,
    TokenBudget,
)
from broca.cli.task_options import (
    AllowCode,
    AskingOptions,
    IncludePath,
    Metric,
    Others,
    ReferenceOption,
    Task,
)
from broca.errors import BadInput

if TYPE_CHECKING:
    from broca.results.localization import Localization

_PAIRS_SHOWN = 5
"""Interactions that are printed; all are in the report."""


@takes_groups
def localize(
    model: Model,
    task: Task,
    others: Others = "auto",
    same_skill: Annotated[
        str, typer.Option(help="More tasks of the same capability, T1,T2: reported apart.")
    ] = "",
    include_path: IncludePath = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="focus, one-shot, greedy, cs-bernoulli, cs-stratified, cs-fresh, cs-tuned, "
            "thompson, coar, co-ablation, gradient, gradient-masked, gradient-integrated or "
            "learned-gates; default: focus, or cs-stratified with --recovery or --tune."
        ),
    ] = None,
    recovery: Annotated[
        str | None,
        typer.Option(
            help="Regression of the cs- methods: lasso, lasso-cv, omp, elastic-net, ridge, "
            "bayesian, ard, stability or non-positive; default: the method's own."
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Try numbers of masks and sparsities as the paper does (method cs-tuned).",
        ),
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(help="Most (mask, item) rows of the search; default: what the method needs."),
    ] = None,
    k: K = 5,
    items: Items = 100,
    seed: Seed = 0,
    components: Components = "heads",
    response: Annotated[
        str | None,
        typer.Option(
            help="What the search measures: accuracy, margin or probability; default: the "
            "method's own choice."
        ),
    ] = None,
    ablation: Ablation = "zero",
    scale: Scale = 0.0,
    metric: Metric = None,
    *,
    asking: AskingOptions,
    reference: ReferenceOption = "own",
    share_prefixes: Annotated[
        str, typer.Option(help="Read shared prompt prefixes once: auto, on or off.")
    ] = "auto",
    reuse_layers: Annotated[
        str, typer.Option(help="Read layers below an ablation once: auto, on or off.")
    ] = "auto",
    token_budget: TokenBudget = None,
    out: Annotated[str, typer.Option(help="Folder for result.json and report.html.")] = "broca-out",
    option: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the method, NAME=VALUE; may be repeated."),
    ] = None,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    executor: Annotated[
        str, typer.Option(help="Where rows are measured: local, or ray (docs/scale.md).")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="A running Ray cluster, such as auto; default: one here.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Workers of Ray; default: as many as it has room for.")
    ] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option(help="GPUs of each; several share a large model.")
    ] = None,
    batch_limit: Annotated[
        float, typer.Option(help="Seconds after which a worker of Ray counts as hung.")
    ] = 1800.0,
    allow_pickle: AllowPickle = False,
    verify: Annotated[
        bool,
        typer.Option("--verify/--no-verify", help="End with statistics, random sets, a verdict."),
    ] = True,
    interactions: Annotated[
        int,
        typer.Option(help="How many leading heads to measure in pairs on fresh items; 0: none."),
    ] = 0,
    allow_code: AllowCode = False,
    journal: Journal = None,
    keep_outputs: Annotated[
        float, typer.Option(help="Share of the rows whose raw output the journal keeps.")
    ] = 0.0,
    resume: Resume = False,
    fresh: Fresh = False,
    json: Annotated[bool, typer.Option("--json", help="Print result.json on stdout.")] = False,
    plain: Plain = False,
) -> None:
    """Find the attention heads that MODEL needs for a task, and prove them on held-out items."""
    from broca.results.codec import encode
    from broca.results.files import check_out_folder
    from broca.searches import DEFAULT_METHOD
    from broca.verbs import localize as api

    if method is None:
        method = "cs-stratified" if recovery is not None or tune else DEFAULT_METHOD
    settings = _options(option or [])
    if recovery is not None:
        settings["recovery"] = recovery
    if tune:
        method = _tuned(method, settings)
    asked = {
        "model": absolute(model) if Path(model).is_dir() else model,
        "task": task,
        "others": others,
        "same_skill": [name.strip() for name in same_skill.split(",") if name.strip()],
        "include_path": None if include_path is None else absolute(include_path),
        "method": method,
        "rows": rows,
        "k": k,
        "items": items,
        "seed": seed,
        "components": components,
        "response": response,
        "ablation": ablation,
        "scale": scale,
        "dtype": dtype,
        "allow_code": allow_code,
        "task_options": {"metric": metric, **asdict(asking), "reference": reference},
        "options": settings,
        "verify": verify,
        "interactions": interactions,
    }
    how = {
        "device": device,
        "device_map": device_map,
        "token_budget": token_budget,
        "share_prefixes": share_prefixes,
        "reuse_layers": reuse_layers,
        "executor": executor,
        "address": address,
        "workers": workers,
        "gpus_per_worker": gpus_per_worker,
        "batch_limit": batch_limit,
        "allow_pickle": allow_pickle,
    }
    arguments = arguments_of({"asked": asked, "how": how})
    progress = ProgressLine(plain=plain)
    try:
        with keeping(
            check_out_folder(out),
            verb="localize",
            asked=asked,
            how=how,
            journal=journal,
            keep_outputs=keep_outputs,
            fresh=fresh,
            resume=resume,
        ) as journaling:
            result = api.localize(**arguments, journal=journaling, on_progress=progress)
            paths = result.save(out)
    finally:
        progress.close()
    if json:
        sys.stdout.write(encode(result))
    else:
        _print(result, paths)


def arguments_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `broca.localize` for what a `reproduce.json` says.

    Raises:
        BadInput: An option of the engine or of a task has a value that does not exist.
    """
    from broca.engine import EngineOptions
    from broca.tasks import TaskOptions

    asked, how = dict(record["asked"]), record["how"]
    asked.pop("verb", None)
    return {
        **asked,
        "task_options": TaskOptions(**asked["task_options"]),
        "device": how["device"],
        "device_map": how["device_map"],
        "executor": _executor(how),
        "allow_pickle": how.get("allow_pickle", False),
        "engine_options": EngineOptions(
            token_budget=how["token_budget"],
            share_prefixes=how["share_prefixes"],
            reuse_layers=how["reuse_layers"],
        ),
    }


def _executor(how: Mapping[str, Any]) -> Any:
    """What `broca.localize` takes as `executor`; runs of older versions were local."""
    from broca.executors import RayOptions

    options: dict[str, Any] = {
        name: how.get(name) for name in ("address", "workers", "gpus_per_worker")
    }
    if how.get("executor", "local") == "ray":
        return RayOptions(**options, batch_limit_s=how["batch_limit"])
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise BadInput(f"--{given[0].replace('_', '-')} needs --executor ray")
    return how.get("executor", "local")


def _options(pairs: list[str]) -> dict[str, Any]:
    """Reads NAME=VALUE pairs; numbers become numbers, true and false what they say."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"--option '{pair}' is not of the form NAME=VALUE")
        value: Any = {"true": True, "false": False}.get(text.lower(), text)
        for number in (int, float):
            try:
                value = number(text)
            except ValueError:
                continue
            break
        options[name.replace("-", "_")] = value
    return options


def _tuned(method: str, settings: dict[str, Any]) -> str:
    """The method that tunes another one; its design goes into the settings.

    Raises:
        BadInput: The method has nothing to tune.
    """
    from broca.searches import require_method

    tuning = require_method(method).tuning
    if tuning is None:
        raise BadInput(
            f"--tune: method '{method}' has no number of masks and sparsity to try; use "
            "cs-stratified or cs-bernoulli, or leave --tune out"
        )
    settings.update(tuning)
    return "cs-tuned"


def _print(result: Localization, paths: tuple[Path, ...]) -> None:
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
    for name in result.tasks:
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
    for one in result.interactions[:_PAIRS_SHOWN]:
        console.print(
            f"{one.first} and {one.second}: together {one.joint_effect:+.3f}, apart "
            f"{one.first_effect:+.3f} and {one.second_effect:+.3f}, interaction "
            f"{one.interaction:+.3f} [{one.ci[0]:+.3f}, {one.ci[1]:+.3f}]",
            markup=False,
        )
    if result.additivity is not None:
        console.print(additivity_line(result.additivity), markup=False)
    if result.verdict is not None:
        console.print(f"{result.verdict.label}: {result.verdict.text}", markup=False)
    if result.shared_effects:
        named = (
            f"{name} (universal)" if name in result.universal else name
            for name in result.shared_effects
        )
        console.print(f"set apart, as the others need them too: {', '.join(named)}", markup=False)
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    console.print(
        f"{result.cost.rows:,} rows of search in {result.cost.wall_s:.1f} s; report: {paths[1]}",
        markup=False,
        soft_wrap=True,
    )
