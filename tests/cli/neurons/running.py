"""Neuron commands within this process."""

from cli.running import broca

from broca.journal import Journal


def neurons(*arguments):
    """Runs the command in this process; what it printed."""
    done = broca("neurons", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scored(folder):
    """Vectors in the journal of an out folder."""
    with Journal(folder / "journal.sqlite", read_only=True) as journal:
        ((vectors,),) = journal.query("SELECT count(*) FROM vectors")
    return vectors
