"""`broca bench ...`: compares the methods with one another, on models and on simulated models."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

from broca.cli.commands import PrintOptions, command, command_of, make_app
from broca.cli.keeping import measuring, this_command
from broca.cli.output import console, print_table
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import listed
from broca.errors import BadInput, Interrupted
from broca.options import DEFAULT_METHOD, MethodsRunOptions, without

if TYPE_CHECKING:
    from broca.studies.methods import MethodComparison, SimulatedSummary

app = make_app(
    "bench",
    "Compare the methods with one another: quality, rows, time.",
    {"methods": "broca.cli.bench:methods", "simulations": "broca.cli.bench:simulations"},
)


@command_of("broca.studies.methods.comparing:compare_methods")
def methods(
    models: list[str],
    /,
    *,
    budgets: str = "default",
    seeds: int = 1,
    first_seed: int = 0,
    candidate: str = DEFAULT_METHOD,
    again: str = "",
    out: str = "broca-bench",
    print_options: Annotated[PrintOptions, without("json")],
    run_options: MethodsRunOptions,
    **parameters: Any,
) -> None:
    """Run every method on every task of MODELS at several budgets and seeds, and summarize.

    Args:
        models: reference, reference-small, planted, model folders or hub ids.
        methods: Methods to compare: M1,M2,... or all.
        budgets: Rows for each measured task, 100,400,...; default: each method's own budget.
        seeds: Number of seeds; each decides the items and the searches.
        first_seed: The first seed, to split a long comparison.
        again: Methods whose finished cells are run again.
        out: Folder of the results; finished cells in it are not run again.
    """
    with measuring(out, run_options, print_options) as (folder, options, progress):
        import broca
        from broca.studies.methods import parse_budgets  # imports torch, as all of `studies`

        comparison = broca.compare_methods(
            models,
            budgets=parse_budgets(budgets),
            seeds=_seeds(seeds, first_seed),
            candidate=candidate,
            again=again,
            out=folder,
            on_progress=progress,
            run_options=options,
            **parameters,
        )
    _print(comparison, candidate)


@command
def simulations(
    *,
    methods: str = "all",
    components: str = "512,1024,8192",
    scenarios: str = "all",
    rows: str = "300,1000,3000",
    seeds: int = 3,
    first_seed: int = 0,
    out: str = "broca-bench",
    print_options: Annotated[PrintOptions, without("json")],
) -> None:
    """Run the methods on simulated models whose strongest components or best sets are known.

    Args:
        methods: Methods to compare: M1,M2,... or all.
        components: Numbers of components of the simulated models.
        scenarios: additive, heavy, binary, redundant, small, backups; or all.
        rows: Maximum numbers of rows of a search.
        seeds: Number of seeds; each decides the items and the searches.
        first_seed: The first seed, to split a long comparison.
        out: Folder of the results; finished cells in it are not run again.
    """
    import broca

    with closing(ProgressDisplay(print_options)) as progress:
        try:
            summaries = broca.simulate_methods(
                methods,
                components=_numbers("components", components),
                scenarios=scenarios,
                rows=_numbers("rows", rows),
                seeds=_seeds(seeds, first_seed),
                out=out,
                on_progress=progress,
            )
        except KeyboardInterrupt as error:
            raise Interrupted(
                f"interrupted; what was finished is kept in '{out}'; this goes on: {this_command()}"
            ) from error
    _print_simulations(summaries)


def _numbers(name: str, text: str) -> tuple[int, ...]:
    words = listed(text)
    for word in words:
        if not word.isdecimal() or int(word) < 1:
            raise BadInput(f"`{name}`: '{word}' is not a number above 0")
    if not words:
        raise BadInput(f"`{name}` names no number")
    return tuple(dict.fromkeys(int(word) for word in words))


def _seeds(count: int, first: int) -> tuple[int, ...]:
    if count < 1 or first < 0:
        raise BadInput(f"`seeds` must be at least 1 and `first_seed` 0, not {count} and {first}")
    return tuple(range(first, first + count))


def _print(comparison: MethodComparison, candidate: str) -> None:
    """Prints a table for each model, and the reasons of refusals."""
    from broca.studies.methods.text_tables import columns, texts_of

    screen = console()
    for model in dict.fromkeys(line.model for line in comparison.summaries):
        lines = [line for line in comparison.summaries if line.model == model]
        print_table(
            screen,
            f"methods on {model}",
            tuple(columns(lines)),
            (tuple(texts_of(line, lines)) for line in lines),
        )
        for refusal in dict.fromkeys(line.refusal for line in lines if line.refusal):
            screen.print(f"refused: {refusal}", markup=False)
    screen.print(
        "A budget is rows for each measured task: a method that measures the other tasks too has "
        "as many for each of them; 'rows' counts all rows of a search. A search that selects "
        f"nothing counts with drops of 0. 'candidate ahead' is how far {candidate} by default is "
        "above a method, in mean specific drop over the tasks and seeds that both have.",
        markup=False,
    )
    if comparison.left_out:
        screen.print(
            f"{comparison.left_out} cells of the folder are left out: other models or settings",
            markup=False,
        )
    screen.print(
        f"{comparison.ran} cells run; page: {comparison.page}", markup=False, soft_wrap=True
    )


def _print_simulations(lines: Sequence[SimulatedSummary]) -> None:
    from broca.studies.methods.text_tables import SIMULATED_COLUMNS, simulated_texts

    print_table(
        console(),
        "the five strongest components of simulated models",
        tuple(SIMULATED_COLUMNS),
        (tuple(simulated_texts(line)) for line in lines),
        left=SIMULATED_COLUMNS.index("method") + 1,
    )
