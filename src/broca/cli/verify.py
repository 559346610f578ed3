"""`broca verify`: test a claim on a set of heads."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broca.cli.keeping import kept_in
from broca.cli.model_options import AllowPickle, ComponentsButNeurons, Device, DeviceMap, DType
from broca.cli.progress import ProgressLine
from broca.cli.run_options import Journal, Plain
from broca.cli.task_options import AllowCode, IncludePath, Others
from broca.errors import BadInput

if TYPE_CHECKING:
    from broca.results.base import Interval
    from broca.results.localization import Localization
    from broca.results.verification import Verification


def verify(
    target: Annotated[str, typer.Argument(help="The out folder of a run; with --heads, a model.")],
    heads: Annotated[
        str | None,
        typer.Option(help="Heads to verify, L0H4+L1H8, or published:MODEL/TASK/METHOD."),
    ] = None,
    neurons: Annotated[
        str | None,
        typer.Option(help="Neurons to ablate too, L2N17+L3N4, or a folder of `neurons locate`."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="The task they are claimed for; default: the run's.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model, where the run's has moved.")] = None,
    others: Others = "auto",
    same_skill: Annotated[str, typer.Option(help="More tasks of the same capability, T1,T2.")] = "",
    both_ways: Annotated[
        bool,
        typer.Option("--both-ways", help="Localize the same-skill tasks too and cross-measure."),
    ] = False,
    include_path: IncludePath = None,
    controls: Annotated[int, typer.Option(help="Random sets of each kind; 0 for none.")] = 20,
    limit: Annotated[
        int | None, typer.Option(help="Most report items of each task; default: all.")
    ] = None,
    ablation: Annotated[
        str | None, typer.Option(help="zero, mean or resample; default: the run's, or zero.")
    ] = None,
    components: ComponentsButNeurons = "heads",
    seed: Annotated[
        int | None, typer.Option(help="Seed; default: the run's, whose items it keeps apart, or 0.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for verification.json; default: the run's.")
    ] = None,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    allow_code: AllowCode = False,
    allow_pickle: AllowPickle = False,
    journal: Journal = None,
    json: Annotated[bool, typer.Option("--json", help="Print verification.json.")] = False,
    plain: Plain = False,
) -> None:
    """Test on held-out items that a task needs some heads, and that other tasks do not."""
    from broca.engine import Ablation
    from broca.reports import write
    from broca.results.codec import encode
    from broca.results.files import check_out_folder
    from broca.results.localization import Localization
    from broca.tasks import TaskOptions
    from broca.verbs.verify import verify_heads as run
    from broca.verification import Scope

    result: Localization | None = None
    if neurons is not None:
        heads, components = _with_neurons(heads, neurons, components)
    if heads is None:
        result = Localization.read(target)
        if not result.selected:
            raise BadInput(
                f"the run in '{target}' selected nothing: there is nothing to verify; name heads "
                "with --heads"
            )
    elif task is None:
        raise BadInput("--heads and --neurons need the --task that they are claimed for")
    if controls < 0:
        raise BadInput(f"--controls must be at least 0, not {controls}")
    if ablation is not None:
        Ablation(ablation)  # type: ignore[arg-type]  # refused here, before the model is loaded
    folder = check_out_folder(out or (target if result else "broca-out"))
    progress = ProgressLine(plain=plain)
    with closing(progress), kept_in(Path(journal or folder / "journal.sqlite")) as kept:
        verification = run(
            model or (result.model.name if result else target),
            task=task or (result.task if result else ""),
            heads=heads if heads is not None else (result.selected if result else ()),
            order=_order(result) if result else (),
            others=_others(result, others),
            same_skill=[
                *(result.same_skill if result and task is None else ()),
                *_split(same_skill),
            ],
            include_path=include_path,
            seed=seed if seed is not None else (result.search.seed if result else 0),
            components=result.components if result else components,
            ablation=ablation or (result.ablation.kind if result else "zero"),  # type: ignore[arg-type]
            scale=result.ablation.scale if result else 0.0,
            both_ways=both_ways,
            limit=limit,
            task_options=TaskOptions(**result.task_options) if result else None,
            allow_code=allow_code,
            scope=Scope(controls=controls),
            dtype=dtype,
            device=device,
            device_map=device_map,
            allow_pickle=allow_pickle,
            journal=kept,
            on_progress=progress,
        )
    if result is not None and verification.model.fingerprint != result.model.fingerprint:
        raise BadInput(
            f"the weights of '{verification.model.name}' are not those of the run (fingerprint "
            f"{verification.model.fingerprint}, not {result.model.fingerprint}): name the run's "
            "with --model"
        )
    page = write(verification, folder, run=result)[-1]
    if json:
        sys.stdout.write(encode(verification))
    else:
        _print(verification, page)


def _with_neurons(heads: str | None, neurons: str, components: str) -> tuple[str, str]:
    """The heads and the neurons as one list of names, and the components that hold both."""
    from broca.results.neurons import NeuronSet

    if Path(neurons).exists():
        found = "+".join(one.name for one in NeuronSet.read(neurons).selected)
        if not found:
            raise BadInput(f"--neurons '{neurons}' located none: there is nothing to verify")
        neurons = found
    kinds = [kind for kind in components.split("+") if kind != "neurons"]
    if heads is None:
        return neurons, "neurons"
    return f"{heads}+{neurons}", "+".join([*kinds, "neurons"])


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _order(result: Localization) -> list[str]:
    """The curve's heads: the selection first, then the ranking while effects are harmful."""
    rest = [one.name for one in result.ranking if one.effect < 0]
    return list(dict.fromkeys([*result.selected, *rest]))


def _others(result: Localization | None, others: str) -> str | list[str]:
    return list(result.others) if result and others == "auto" else others


def _print(verification: Verification, page: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    # a pipe has no width: 80 columns would cut the names of tasks
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)

    def table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
        if not rows:
            return
        drawn = Table(title=title)
        for number, column in enumerate(columns):
            drawn.add_column(column, justify="right" if number else "left")
        for row in rows:
            drawn.add_row(*row)
        console.print(drawn)

    table(
        f"points lost without {', '.join(verification.heads)}",
        ("task", "role", "items", "intact", "ablated", "points lost", "p", "p (Holm)"),
        [
            (
                one.task, one.role.replace("_", " "), str(one.items),
                f"{verification.baseline[one.task]:.3f}", f"{verification.after[one.task]:.3f}",
                _points(one.interval), f"{one.p:.2g}", f"{one.p_holm:.2g}",
            )
            for one in verification.drops
        ]
        + [
            (name, "", "", "", "", _points(one), "", "")
            for name, one in (
                ("mean of the others", verification.off_target), ("specific", verification.specific)
            )
            if one is not None
        ],
    )  # fmt: skip
    table(
        "beside random sets of the same size",
        ("matched by", "sets", "rank in drop", "effect", "rank in specific drop", "effect"),
        [
            (
                one.kind,
                str(len(one.sets)),
                *(
                    part
                    for each in (one.drop, one.specific)
                    for part in (
                        ("", "")
                        if each is None
                        else (
                            f"{each.rank} of {len(one.sets) + 1}",
                            "" if each.effect is None else f"{each.effect:.1f} sd",
                        )
                    )
                ),
            )
            for one in verification.controls
        ],
    )
    table(
        "each head",
        ("head", "ablated alone", "restored alone", "p (Holm)", "needed"),
        [
            (
                one.head, _points(one.alone), _points(one.restored), f"{one.p:.2g}",
                "yes" if one.needed else "no",
            )
            for one in verification.members
        ],
    )  # fmt: skip
    if verification.curve is not None:
        table(
            f"the first k heads (flat from k = {verification.curve.flat_at})",
            ("k", "head", "task", "same skill", "others"),
            [
                (
                    str(one.k), one.head or "", _points(one.drop), _points(one.same_skill),
                    _points(one.others),
                )
                for one in verification.curve.points
            ],
        )  # fmt: skip
    table(
        "other kinds of ablation",
        ("ablation", "points lost", "specific", "survives"),
        [
            (one.kind, _points(one.drop), _points(one.specific), "yes" if one.survives else "no")
            for one in verification.ablations
        ],
    )
    table(
        "tasks of the same capability",
        ("found on", "measured on", "heads", "points lost"),
        [
            (one.found_on, one.measured_on, " ".join(one.heads), _points(one.drop))
            for one in verification.crossings
        ],
    )
    degenerate = [one for one in verification.failures if one.excess > 0]
    table(
        "newly degenerate outputs",
        ("task", "items", "share", "most common output"),
        [
            (one.task, str(one.items), f"{one.excess:.0%}", repr(one.most_common))
            for one in degenerate
        ],
    )
    verdict = verification.verdict
    assert verdict is not None
    console.print(f"{verdict.label}: {verdict.text}", markup=False)
    if verdict.items_needed:
        console.print(f"About {verdict.items_needed} report items would do.")
    console.print(f"{verification.rows:,} rows; report: {page}", markup=False, soft_wrap=True)


def _points(one: Interval | None) -> str:
    if one is None:
        return ""
    return f"{100 * one.value:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]"
