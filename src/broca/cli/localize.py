"""`broca localize`: finds the heads, verifies them, writes the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from broca.cli.commands import OutputOptions, command_of
from broca.cli.keeping import kept_result, record_of
from broca.cli.output import console, print_lines, print_page_table, show
from broca.cli.refit import additivity_line
from broca.cli.wording import listed
from broca.errors import BadInput
from broca.options import RunOptions, SearchOptions, without

if TYPE_CHECKING:
    from broca.results.localization import Localization

_PAIRS_SHOWN = 5
"""Number of interactions that are printed; the report contains all."""


@command_of("broca.verbs.localize:localize")
def localize(
    *,
    same_skill: str = "",
    recovery: str | None = None,
    tune: bool = False,
    option: list[str] | None = None,
    out: str = "broca-out",
    search_options: Annotated[SearchOptions, without("options")],
    run_options: RunOptions,
    output_options: OutputOptions,
    **parameters: Any,
) -> None:
    """Find the attention heads that MODEL needs for a task, and verify them on held-out items.

    Args:
        same_skill: More tasks of the same capability, T1,T2: reported separately.
        method: {methods}; default: {default_method}, or cs-stratified with `recovery` or `tune`.
        recovery: Regression of the cs- methods: {recoveries}; default: the method's own.
        tune: Try several numbers of masks and sparsities as in the paper (method cs-tuned).
        option: A setting of the method, NAME=VALUE; may be repeated.
        report_items: Maximum number of report items of the task, and of all others together.
        interactions: Number of leading heads to ablate in pairs on fresh items; 0: none.
        verify: End with statistics, random sets and a verdict.
        out: Folder for result.json and report.html.
    """
    settings = settings_from(option or [])
    if recovery is not None:
        settings["recovery"] = recovery
    method = search_options.method or ("cs-stratified" if recovery or tune else None)
    if tune:
        method = _tuned(str(method), settings)
    record = record_of(
        **parameters,
        same_skill=listed(same_skill),
        search_options=replace(search_options, method=method, options=settings),
        run_options=run_options,
    )
    from broca.results.localization import Localization

    result = kept_result(Localization, out, record, run_options, output_options, verb="localize")
    show(result, Path(out).expanduser() / result.PAGE, output_options.print_options, _print)


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


def _print(result: Localization, page: Path) -> None:
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
