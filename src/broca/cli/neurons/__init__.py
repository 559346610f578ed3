"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

import typer

from broca.cli.neurons.changing import cross, enhance, erase, reliability
from broca.cli.neurons.locating import decouple, fidelity, locate, overlap

app = typer.Typer(
    name="neurons",
    help="Find the feed-forward neurons that carry what a data set has in common, and test them.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(locate)
app.command()(fidelity)
app.command()(reliability)
app.command()(decouple)
app.command()(overlap)
app.command()(erase)
app.command()(enhance)
app.command()(cross)
