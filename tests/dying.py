"""Processes that SIGKILL ends at a chosen moment, which no clock decides."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal

from torch.optim.optimizer import register_optimizer_step_post_hook

from broca.journal import store


def die():
    """Ends this process as a machine that fails does: nothing is flushed, nothing is closed."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(call):
    """Makes a call in a forked process, which must end by SIGKILL."""
    child = multiprocessing.get_context("fork").Process(target=call)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL, f"the call ended with {child.exitcode}"


def killed_in_batch(call, number):
    """Kills the call while its journal's batch of this number, from 1, is being written.

    The batch was measured and is not committed: of all moments the one that loses most.
    """
    add_batch = store._add_batch

    def counted(connection, *batch, **size):
        added = add_batch(connection, *batch, **size)
        ((batches,),) = connection.execute("SELECT count(*) FROM batches")
        if batches == number:
            die()
        return added

    def doomed():
        store._add_batch = counted
        call()

    killed(doomed)


def killed_in_stage(call, stage):
    """Kills the call, which takes `on_progress`, when something is done within a stage."""

    def progress(title, progress):
        if progress is not None and progress.done and title.startswith(stage):
            die()

    killed(lambda: call(on_progress=progress))


def killed_in_training(call, *, steps):
    """Kills the call after so many steps of an optimizer."""

    def doomed():
        taken = itertools.count(1)
        register_optimizer_step_post_hook(lambda *_: die() if next(taken) == steps else None)
        call()

    killed(doomed)
