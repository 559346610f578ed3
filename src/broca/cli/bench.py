"""`broca bench ...`: methods compared with one another, on models and on simulated ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broca.cli.model_options import AllowPickle, Device, DType
from broca.cli.progress import ProgressLine
from broca.cli.run_options import Items, K, Plain
from broca.cli.task_options import IncludePath, Tasks
from broca.errors import BadInput, Interrupted

if TYPE_CHECKING:
    from broca.studies.methods import MethodComparison, SimulatedSummary

app = typer.Typer(
    name="bench",
    help="Compare the methods with one another: quality, rows, time.",
    no_args_is_help=True,
    add_completion=False,
)

Methods = Annotated[str, typer.Option(help="Methods to compare: M1,M2,... or all.")]
Seeds = Annotated[int, typer.Option(help="How many seeds, of items and searches alike.")]
FirstSeed = Annotated[int, typer.Option(help="The first seed; splits a long comparison.")]
Out = Annotated[
    str, typer.Option(help="Folder of the results; what it holds is not measured again.")
]


@app.command()
def methods(
    models: Annotated[
        list[str], typer.Argument(help="reference, planted, model folders or hub ids.")
    ],
    methods: Methods = "all",
    tasks: Tasks = "auto",
    others: Annotated[
        str, typer.Option(help="Tasks the heads should leave alone: T1,T2 or auto.")
    ] = "auto",
    include_path: IncludePath = None,
    budgets: Annotated[
        str,
        typer.Option(
            help="Rows for each measured task, 100,400,...; default: what a method takes by itself."
        ),
    ] = "default",
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    k: K = 5,
    items: Items = 100,
    report_items: Annotated[
        int,
        typer.Option(help="Most report items of the task, and of all others together."),
    ] = 300,
    exhaustive: Annotated[
        int,
        typer.Option(
            help="Items on which every head is lost alone, for top-k recall and calibration; 0 for "
            "neither."
        ),
    ] = 300,
    candidate: Annotated[
        str, typer.Option(help="The method that the others are compared with.")
    ] = "focus",
    again: Annotated[
        str,
        typer.Option(help="Methods whose cells are run again, of those that the command names."),
    ] = "",
    out: Out = "broca-bench",
    executor: Annotated[str, typer.Option(help="Where rows are measured: local or ray.")] = "local",
    journal: Annotated[
        str | None, typer.Option(help="A journal to share; default: the folder's own.")
    ] = None,
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    plain: Plain = False,
) -> None:
    """Run every method on every task of MODELS at several budgets and seeds, and sum up."""
    from broca.studies.methods import compare_methods, parse_budgets

    progress = ProgressLine(plain=plain)
    try:
        found = compare_methods(
            models,
            methods=methods,
            tasks=tasks,
            others=others,
            include_path=include_path,
            budgets=parse_budgets(budgets),
            seeds=_seeds(seeds, first_seed),
            k=k,
            items=items,
            report_items=report_items,
            exhaustive=exhaustive,
            candidate=candidate,
            again=again,
            out=out,
            executor=executor,
            journal=journal,
            dtype=dtype,
            device=device,
            allow_pickle=allow_pickle,
            on_progress=progress,
        )
    except KeyboardInterrupt as error:
        raise _interrupted(out) from error
    finally:
        progress.close()
    _print(found, candidate)


@app.command()
def simulations(
    methods: Methods = "all",
    components: Annotated[
        str, typer.Option(help="Numbers of components of the simulated models.")
    ] = "512,1024,8192",
    scenarios: Annotated[
        str, typer.Option(help="additive, heavy, binary, redundant; or all.")
    ] = "all",
    rows: Annotated[str, typer.Option(help="Rows that a method may spend.")] = "300,1000,3000",
    seeds: Seeds = 3,
    first_seed: FirstSeed = 0,
    out: Out = "broca-bench",
    plain: Plain = False,
) -> None:
    """Run the methods on simulated models whose five strongest components are known."""
    from broca.studies.methods import simulate_methods

    progress = ProgressLine(plain=plain)
    try:
        summaries = simulate_methods(
            methods,
            components=_numbers("--components", components),
            scenarios=scenarios,
            rows=_numbers("--rows", rows),
            seeds=_seeds(seeds, first_seed),
            out=out,
            on_progress=progress,
        )
    except KeyboardInterrupt as error:
        raise _interrupted(out) from error
    finally:
        progress.close()
    _print_simulations(summaries)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(option: str, text: str) -> tuple[int, ...]:
    words = _words(text)
    for word in words:
        if not word.isdecimal() or int(word) < 1:
            raise BadInput(f"{option}: '{word}' is no number above 0")
    if not words:
        raise BadInput(f"{option} names no number")
    return tuple(dict.fromkeys(int(word) for word in words))


def _seeds(count: int, first: int) -> tuple[int, ...]:
    if count < 1 or first < 0:
        raise BadInput(f"--seeds must be at least 1 and --first-seed 0, not {count} and {first}")
    return tuple(range(first, first + count))


def _interrupted(out: str) -> Interrupted:
    return Interrupted(
        f"interrupted; what was finished is kept in '{out}', and the same command goes on"
    )


def _print(found: MethodComparison, candidate: str) -> None:
    """Prints a table for each model, and why methods refused."""
    from rich.console import Console
    from rich.table import Table

    from broca.studies.methods.text_tables import columns, texts_of

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    for model in dict.fromkeys(line.model for line in found.summaries):
        own = [line for line in found.summaries if line.model == model]
        table = Table(title=f"methods on {model}")
        for column in columns(own):
            table.add_column(column, justify="left" if column == "method" else "right")
        for line in own:
            table.add_row(*texts_of(line, own))
        console.print(table)
        for refusal in dict.fromkeys(line.refusal for line in own if line.refusal):
            console.print(f"refused: {refusal}", markup=False)
    console.print(
        "A budget is rows for each measured task: a method that measures the other tasks too has "
        "as many for each of them; 'rows' is what a search spent in all. A search that selects "
        f"nothing counts with drops of 0. 'candidate ahead' is what {candidate} by default reaches "
        "beyond a method, in specific drop over the tasks and seeds that both have.",
        markup=False,
    )
    if found.left_out:
        console.print(
            f"{found.left_out} cells of the folder are left out: other models or settings",
            markup=False,
        )
    console.print(f"{found.ran} cells run; page: {found.page}", markup=False, soft_wrap=True)


def _print_simulations(lines: Sequence[SimulatedSummary]) -> None:
    from rich.console import Console
    from rich.table import Table

    from broca.studies.methods.text_tables import SIMULATED_COLUMNS, simulated_texts

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    table = Table(title="the five strongest components of simulated models")
    for column in SIMULATED_COLUMNS:
        table.add_column(column, justify="left" if column in ("scenario", "method") else "right")
    for line in lines:
        table.add_row(*simulated_texts(line))
    console.print(table)
