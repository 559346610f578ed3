"""`broca verify`: test a claim on a set of heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from broca.cli.commands import SharedFolderOutput, command_of
from broca.cli.keeping import LoadedModels, settings_of, shared_result
from broca.cli.output import console, folder_of, points, print_table, show
from broca.cli.tracking import Report
from broca.errors import BadInput
from broca.options import RunOptions, without

if TYPE_CHECKING:
    from broca.results.verification import Verification


@command_of("broca.verbs.verify:verify", hidden=("run", "order", "scope"))
def verify(
    target: str,
    /,
    *,
    model: str | None = None,
    task: str | None = None,
    heads: str | None = None,
    neurons: str | None = None,
    controls: int = 20,
    out: str | None = None,
    run_options: Annotated[RunOptions, without("ablation_options", "limit")],
    output_options: SharedFolderOutput,
    **parameters: Any,
) -> None:
    """Test on held-out items whether a task needs some heads and other tasks do not.

    Args:
        target: The out folder of a run; with `heads`, a model.
        model: The model, if the run's model has moved.
        task: The task for which they are claimed; default: the run's.
        heads: Heads to verify, L0H4+L1H8, or published:MODEL/TASK/METHOD.
        neurons: Neurons to ablate too, L2N17+L3N4, or a folder of `broca neurons locate`.
        same_skill: More tasks of the same capability, T1,T2.
        both_ways: Localize the same-skill tasks too, and measure their heads on the task.
        controls: Number of random sets of each kind; about twice as many if few reach the set; 0:
            none.
        ablation: Kind of ablation: {ablations}; default: the run's, or zero.
        seed: Seed; default: the run's, which splits the items as the run did, or 0.
        out: Folder for verification.json; default: the run's.
    """
    from broca.results.localization import Localization
    from broca.results.verification import Verification
    from broca.runs.folder import options_of_run

    claimed = heads is not None or neurons is not None
    run = None if claimed else Localization.read(target)
    if claimed and task is None:
        raise BadInput("`heads` and `neurons` need the `task` for which they are claimed")
    if controls < 0:
        raise BadInput(f"`controls` must be at least 0, not {controls}")
    folder = folder_of(out, target if run else None)
    recorded = options_of_run(target, run_options) if run else run_options
    settings = settings_of(
        "verify", target=target, model=model, task=task, heads=heads, neurons=neurons,
        controls=controls, run_options=recorded, **parameters,
    )  # fmt: skip
    name = model or (run.model.name if run else target)

    def measure(options: RunOptions, report: Report) -> tuple[Verification, LoadedModels]:
        import broca
        from broca.verification import Scope  # imports torch, after the first line is shown

        result = broca.verify(
            name, task, heads, run=target if run else None, neurons=neurons,
            scope=Scope(controls=controls), on_progress=report, run_options=options, **parameters,
        )  # fmt: skip
        return result, [(name, recorded.model_options.revision)]

    result, files = shared_result(
        Verification, folder, settings, recorded, output_options, measure, run=run
    )
    show(result, files[-1], output_options.print_options, _print)


def _print(result: Verification, page: Path) -> None:
    from broca.reports.words import headline

    screen, verdict = console(), result.verdict
    assert verdict is not None
    screen.print(f"{headline(result)}.", markup=False)
    screen.print(f"{verdict.label}: {verdict.text}", markup=False)
    if verdict.items_needed:
        screen.print(f"About {verdict.items_needed} report items would be enough.")

    def drops() -> Iterator[tuple[str, ...]]:
        for drop in result.drops:
            yield (
                drop.task, drop.role.replace("_", " "), str(drop.items),
                f"{drop.chance:.3f}" if drop.chance else "",
                f"{result.baseline[drop.task]:.3f}", f"{result.after[drop.task]:.3f}",
                points(drop.interval), f"{drop.p:.2g}", f"{drop.p_holm:.2g}",
            )  # fmt: skip
        worst = result.worst
        for name, interval in (
            ("mean of the others", result.off_target),
            (f"most: {worst.task}" if worst else "", worst.interval if worst else None),
            ("specific", result.specific),
        ):
            if interval is not None:
                yield (name, "", "", "", "", "", points(interval), "", "")

    print_table(
        screen,
        f"points lost without {', '.join(result.heads)}",
        "task|role|items|chance|intact|ablated|points lost|p|p (Holm)",
        drops(),
    )
    print_table(
        screen,
        "compared with random sets of the same size",
        "matched by|sets|reach the drop|effect|reach the specific drop|effect",
        (
            (
                control.kind,
                str(len(control.sets)),
                *(
                    cell
                    for place in (control.drop, control.specific)
                    for cell in (
                        ("", "")
                        if place is None
                        else (
                            f"{place.rank - 1} of {len(control.sets)}",
                            "" if place.effect is None else f"{place.effect:.1f} sd",
                        )
                    )
                ),
            )
            for control in result.controls
        ),
    )
    print_table(
        screen,
        "each head",
        "head|costs alone|adds to the others|p (Holm)|needed",
        (
            (
                member.head, points(member.alone), points(member.restored), f"{member.p:.2g}",
                "yes" if member.needed else "no",
            )
            for member in result.members
        ),
    )  # fmt: skip
    if result.curve is not None:
        print_table(
            screen,
            f"the first k heads (flat from k = {result.curve.flat_at})",
            "k|head|task|same skill|others",
            (
                (
                    str(point.k), point.head or "", points(point.drop), points(point.same_skill),
                    points(point.others),
                )
                for point in result.curve.points
            ),
        )  # fmt: skip
    print_table(
        screen,
        "other kinds of ablation",
        "ablation|points lost|specific|survives",
        (
            (
                kind.kind,
                points(kind.drop),
                points(kind.specific),
                "yes" if kind.survives else "no",
            )
            for kind in result.ablations
        ),
    )
    print_table(
        screen,
        "tasks of the same capability",
        "found on|measured on|heads|points lost",
        (
            (crossing.found_on, crossing.measured_on, " ".join(crossing.heads),
             points(crossing.drop))
            for crossing in result.crossings
        ),
    )  # fmt: skip
    print_table(
        screen,
        "newly degenerate outputs",
        "task|items|share|with loss of score|most common output",
        (
            (
                failure.task,
                str(failure.items),
                f"{failure.excess:.0%}",
                f"{failure.damage:.0%}",
                repr(failure.most_common),
            )
            for failure in result.failures
            if failure.excess > 0
        ),
    )
    screen.print(f"{result.rows:,} rows; report: {page}", markup=False, soft_wrap=True)
