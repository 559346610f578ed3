"""`broca stress`: tests the role of a set of heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import SharedFolderOutput, command_of
from broca.cli.keeping import LoadedModels, settings_of, shared_result
from broca.cli.output import console, folder_of, interval_text, print_page_table, show
from broca.cli.tracking import Report
from broca.cli.wording import say
from broca.options import RunOptions, StressRunOptions

if TYPE_CHECKING:
    from broca.results.stress_test import StressTest


@command_of("broca.verbs.stress:stress", renamed={"model": "target"}, hidden=("sets",))
def stress(
    target: str,
    /,
    *,
    heads: str | None = None,
    control: list[str] | None = None,
    out: str | None = None,
    run_options: StressRunOptions,
    output_options: SharedFolderOutput,
    **parameters: Any,
) -> None:
    """Test necessity, decodability, reversal and transfer of some heads, with controls.

    Args:
        target: The out folder of a run; with `heads`, a model.
        heads: Heads, L0H4+L1H8, or published:MODEL/TASK/METHOD.
        family: Prompts with two operations: letters, or a YAML file.
        control: A control family: sums, or a YAML file; may be repeated.
        out: Folder for stress.json; default: the run's, or broca-out.
    """
    from broca.results.localization import Localization
    from broca.results.stress_test import StressTest
    from broca.runs.folder import options_of_run

    run = Localization.read(target) if heads is None else None
    if run is not None:
        run_options = options_of_run(target, run_options)
    folder = folder_of(out, target if run else None)
    settings = settings_of(
        "stress", target=target, heads=heads, control=control, run_options=run_options, **parameters
    )

    def measure(options: RunOptions, report: Report) -> tuple[StressTest, LoadedModels]:
        import broca

        result = broca.stress(
            run or target,
            heads=heads,
            control=control or ["sums"],
            on_progress=report,
            run_options=options,
            **parameters,
        )
        name = run.model.name if run else target
        return result, [(name, options.model_options.revision)]

    result, files = shared_result(
        StressTest, folder, settings, run_options, output_options, measure, run=run
    )
    show(result, files[-1], output_options.print_options, _print)


def _print(result: StressTest, page: Path) -> None:
    from broca.reports.stress import necessity_table, reversal_table, shift_table

    screen = console()
    for table in (shift_table(result), necessity_table(result), reversal_table(result)):
        print_page_table(screen, table)
    if result.probe is not None:
        say(
            f"probe {result.probe.accuracy:.2f} (shuffled {result.probe.shuffled:.2f}, "
            f"surface {result.probe.surface:.2f}, chance {result.probe.chance:.2f})"
        )
    say(
        f"positive control {interval_text(result.positive_control)} nats",
        f"{result.verdict}: {result.text}",
        f"report: {page}",
    )
