"""Ends processes by SIGKILL at a chosen step, independently of timing."""

import multiprocessing
import os
import signal

from broca.store import Journal


def die():
    """Ends this process by SIGKILL, so that nothing is flushed or closed."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(call):
    """Runs a call in a forked process and asserts that SIGKILL ended the process."""
    child = multiprocessing.get_context("fork").Process(target=call)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL, f"the call ended with {child.exitcode}"


def killed_in_batch(call, number):
    """Kills the call while it writes batch `number`, counted from 1, to its journal.

    The batch is measured and not yet committed: a kill at this point loses the most rows.
    """
    write = Journal.write

    def counted(journal, **batch):
        with journal.transaction():
            write(journal, **batch)
            if journal.query("SELECT count(*) FROM batches") == [(number,)]:
                die()

    def doomed():
        Journal.write = counted
        call()

    killed(doomed)
