"""The first Ctrl+C ends a run after the batch, and the second one immediately."""

import os
import signal

import pytest

from broca.runs.interrupts import Stopper


def test_second_interrupt_ends_at_once():
    """The second interrupt ends at once, and so does the first one outside a measurement."""
    with Stopper() as stopper, stopper.measuring():
        os.kill(os.getpid(), signal.SIGINT)
        assert stopper.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with Stopper() as stopper, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert not stopper.requested
