"""The options that say what a run measures, where it keeps it, and what it prints."""

from __future__ import annotations

from typing import Annotated

import typer

K = Annotated[int, typer.Option(help="Most heads to select.")]
Items = Annotated[int, typer.Option(help="Most items to search on.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Ablation = Annotated[
    str, typer.Option(help="What replaces an ablated component: zero, mean or resample.")
]
Scale = Annotated[
    float, typer.Option(help="Gate of an ablated component; 0 ablates, others scale.")
]
TokenBudget = Annotated[
    int | None, typer.Option(help="Most tokens of a batch; default: from the free memory.")
]
Journal = Annotated[
    str | None,
    typer.Option(help="A journal to share between runs; default: journal.sqlite in --out."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or refuse.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Begin anew in --out; its journal is set aside.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Plain = Annotated[bool, typer.Option("--plain", help="Progress as plain lines.")]
