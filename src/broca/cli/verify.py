"""`broca verify`: test a claim on a set of heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from broca.cli.commands import SharedFolderOutput, command_of
from broca.cli.keeping import LoadedModels, settings_of, shared_result
from broca.cli.output import console, folder_of, points, print_page_table, print_table, show
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
    from broca.reports import verification as tables
    from broca.reports.words import headline

    screen, verdict = console(), result.verdict
    assert verdict is not None
    screen.print(f"{headline(result)}.", markup=False)
    screen.print(f"{verdict.label}: {verdict.text}", markup=False)
    if verdict.items_needed:
        screen.print(f"About {verdict.items_needed} report items would be enough.")
    for table, columns in (
        (tables.task_table(result), "task|role|items|chance|intact|ablated|points lost|p (Holm)"),
        (tables.control_table(result), ""),
        (tables.member_table(result), ""),
    ):
        print_page_table(screen, table, columns)
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
    for table in (
        tables.ablation_table(result), tables.crossing_table(result), tables.failure_table(result),
    ):  # fmt: skip
        print_page_table(screen, table)
    screen.print(f"{result.rows:,} rows; report: {page}", markup=False, soft_wrap=True)
