"""Neuron commands within this process."""

from cli.running import broca
from journals import totals


def neurons(*arguments):
    """Runs the command in this process; what it printed."""
    done = broca("neurons", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scored(folder):
    """Vectors in the journal of an out folder."""
    return totals(folder / "journal.sqlite")["vectors"]
