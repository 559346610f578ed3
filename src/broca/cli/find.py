"""Commands that find components and test claims about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.keeping import OutputOptions, SharedOutput, kept_result
from broca.cli.output import (
    console,
    folder_of,
    interval_text,
    points,
    print_lines,
    print_page_table,
    print_table,
    show,
)
from broca.cli.wording import say
from broca.errors import BadInput
from broca.options import (
    AtlasOptions,
    CompareOptions,
    LocalizeOptions,
    Options,
    StressOptions,
    VerifyOptions,
)

if TYPE_CHECKING:
    from broca.results.atlas import Atlas
    from broca.results.comparison import Comparison
    from broca.results.localization import AdditivityInfo, Localization
    from broca.results.stress_test import StressTest
    from broca.results.verification import Verification

_PAIRS_SHOWN = 5
"""Number of interactions that are printed; the report contains all."""

_SHOWN = 10
"""Number of components that are printed for each model and task."""


@dataclass(frozen=True, kw_only=True)
class MethodFlags(Options):
    """Settings of the method as flags."""

    recovery: str | None = None
    """Regression of the cs- methods: {recoveries}; default: the method's own."""

    tune: bool = False
    """Try several numbers of masks and sparsities as in the paper (method cs-tuned)."""

    option: list[str] = field(default_factory=list)
    """A setting of the method, NAME=VALUE; may be repeated."""


def localize(
    options: LocalizeOptions,
    *,
    flags: MethodFlags = MethodFlags(),
    out: str = "broca-out",
    output: OutputOptions = OutputOptions(),
) -> None:
    """Find the attention heads that MODEL needs for a task, and verify them on held-out items.

    Args:
        out: Folder for result.json and report.html.
    """
    from broca.results.localization import Localization

    search, settings = options.search_options, settings_from(flags.option)
    if flags.recovery is not None:
        settings["recovery"] = flags.recovery
    method = search.method or ("cs-stratified" if flags.recovery or flags.tune else None)
    if flags.tune:
        method = _tuned(str(method), settings)
    options = replace(options, search_options=replace(search, method=method, options=settings))
    result, _ = kept_result(Localization, "localize", options, out, output)
    page = Path(out).expanduser() / result.PAGE
    show(result, page, output.print_options, _print_localization)


def settings_from(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads NAME=VALUE pairs; numbers become numbers, true and false become booleans.

    Raises:
        BadInput: A word is not of the form NAME=VALUE.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"`option` '{pair}' is not of the form NAME=VALUE")
        value: Any = {"true": True, "false": False}.get(text.lower(), text)
        for number in (int, float):
            try:
                value = number(text)
            except ValueError:
                continue
            break
        settings[name.replace("-", "_")] = value
    return settings


def _tuned(method: str, settings: dict[str, Any]) -> str:
    """Returns the method that tunes another method, whose design goes into the settings.

    Raises:
        BadInput: The method has no settings to tune.
    """
    from broca.searches import require_method

    tuning = require_method(method).tuning
    if tuning is None:
        raise BadInput(
            f"`tune`: method '{method}' has no number of masks and sparsity to try; use "
            "cs-stratified or cs-bernoulli, or leave `tune` out"
        )
    settings.update(tuning)
    return "cs-tuned"


def _print_localization(result: Localization, page: Path) -> None:
    """Prints the verdict, the table of scores and drops, and the path of the report."""
    from broca.reports.verification import task_table
    from broca.reports.words import headline

    screen = console()
    screen.print(f"{headline(result)}.", markup=False)
    if result.abstained:
        screen.print(f"Nothing was selected: {result.reason}.", markup=False)
    elif result.verdict is not None:
        screen.print(f"{result.verdict.label}: {result.verdict.text}", markup=False)
    proof = result.verification
    if not result.abstained:
        print_page_table(screen, task_table(proof), "task|intact|ablated|points lost|chance")
    lines = [f"{member.head} {member.says}" for member in proof.members]
    lines += [
        f"{pair.first} and {pair.second}: together {pair.joint_effect:+.3f}, apart "
        f"{pair.first_effect:+.3f} and {pair.second_effect:+.3f}, interaction "
        f"{pair.interaction:+.3f} [{pair.ci[0]:+.3f}, {pair.ci[1]:+.3f}]"
        for pair in result.interactions[:_PAIRS_SHOWN]
    ]
    if result.overlap is not None:
        searches = 1 + len(result.repeats)
        often = ", ".join(f"{name} {times}" for name, times in result.times_selected.items())
        lines.append(
            f"selected in {searches} searches, each on other items: {often or 'nothing'}; two "
            f"selections overlap by {result.overlap:.2f} on average (Jaccard)"
        )
    if result.additivity is not None:
        lines.append(additivity_line(result.additivity))
    if result.shared_effects:
        shared = (
            f"{name} (universal)" if name in result.universal else name
            for name in result.shared_effects
        )
        lines.append(f"set apart, as the others need them too: {', '.join(shared)}")
    lines += [f"note: {note}" for note in result.notes]
    spent = f"{result.cost.rows:,} rows of search in {result.cost.wall_s:.1f} s"
    print_lines(screen, lines, f"{spent}; report: {page}")


def additivity_line(additivity: AdditivityInfo) -> str:
    """Describes in words how well effects add up."""
    return (
        f"additivity: sums of effects explain {additivity.explained:.0%} of the variance on "
        f"held-out masks (rank correlation {additivity.rank_correlation:.2f}, "
        f"{additivity.masks:,} masks)"
    )


def verify(
    options: VerifyOptions, *, out: str | None = None, output: SharedOutput = SharedOutput()
) -> None:
    """Test on held-out items whether a task needs some heads and other tasks do not.

    Args:
        out: Folder for verification.json; default: the run's.
    """
    from broca.results.localization import Localization
    from broca.results.verification import Verification
    from broca.runs.folder import options_of_run

    claimed = options.heads is not None or options.neurons is not None
    if claimed and options.task is None:
        raise BadInput("`heads` and `neurons` need the `task` for which they are claimed")
    run = None if claimed else Localization.read(options.target)
    if run is not None:
        options = replace(options, run_options=options_of_run(options.target, options.run_options))
    folder = folder_of(out, options.target if run else None)
    result, files = kept_result(Verification, "verify", options, folder, output, run=run)
    show(result, files[-1], output.print_options, _print_verification)


def _print_verification(result: Verification, page: Path) -> None:
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


def stress(
    options: StressOptions, *, out: str | None = None, output: SharedOutput = SharedOutput()
) -> None:
    """Test necessity, decodability, reversal and transfer of some heads, with controls.

    Args:
        out: Folder for stress.json; default: the run's, or broca-out.
    """
    from broca.results.localization import Localization
    from broca.results.stress_test import StressTest
    from broca.runs.folder import options_of_run

    run = Localization.read(options.target) if options.heads is None else None
    if run is not None:
        options = replace(options, run_options=options_of_run(options.target, options.run_options))
    folder = folder_of(out, options.target if run else None)
    result, files = kept_result(StressTest, "stress", options, folder, output, run=run)
    show(result, files[-1], output.print_options, _print_stress_test)


def _print_stress_test(result: StressTest, page: Path) -> None:
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


def atlas(
    options: AtlasOptions, *, out: str = "broca-atlas", output: OutputOptions = OutputOptions()
) -> None:
    """Measure the effect of every head of MODEL on several tasks, and cluster heads and tasks.

    Args:
        out: Folder for atlas.json and atlas.html.
    """
    from broca.results.atlas import Atlas

    result, _ = kept_result(Atlas, "atlas", options, out, output)
    show(result, Path(out).expanduser() / result.PAGE, output.print_options, _print_atlas)


def _print_atlas(result: Atlas, page: Path) -> None:
    """Prints what each task needs, what all tasks need, and the path of the page."""
    from broca.reports.atlas import selection_table, task_table, universal_table

    screen = console()
    print_page_table(screen, task_table(result), "task|capability|intact|variance explained")
    print_page_table(screen, selection_table(result))
    print_page_table(screen, universal_table(result), "component|mean effect|tasks hurt")
    lines = (
        [] if result.universal else ["universal: no head hurts most tasks to about the same degree"]
    )
    lines.append(
        f"key/value groups: not tested: {result.groups_note}"
        if result.groups is None
        else f"key/value groups: {result.groups.pairs} pairs of selected heads share one, "
        f"{result.groups.expected:.1f} expected, p = {result.groups.p:.2g}"
    )
    lines += [f"note: {note}" for note in result.notes]
    lines.append("This is a screen of single heads; `broca localize` tests a task's set jointly.")
    spent = f"{result.cost.rows:,} rows in {result.cost.wall_s:.1f} s"
    print_lines(screen, lines, f"{spent}; atlas: {page}")


def compare(
    options: CompareOptions, *, out: str = "broca-out", output: SharedOutput = SharedOutput()
) -> None:
    """Compare models of one architecture, or runs, on the same masks and items.

    Args:
        out: Folder for comparison.json.
    """
    from broca.results.comparison import Comparison

    result, files = kept_result(Comparison, "compare", options, out, output)
    show(result, files[-1], output.print_options, _print_comparison)


def _print_comparison(result: Comparison, page: Path) -> None:
    from broca.reports.comparison import carry_table, difference_table, score_table

    screen = console()
    for table in (difference_table(result, most=_SHOWN), score_table(result), carry_table(result)):
        print_page_table(screen, table)
    notes = (f"note: {note}" for note in result.notes)
    print_lines(screen, (*result.summary(), *notes), f"report: {page}")
