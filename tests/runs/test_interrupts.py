"""Ctrl+C ends a run after the batch, a second one at once."""

import os
import signal

import pytest

from broca.runs.interrupts import Stopper


def test_second_interrupt_ends_at_once():
    """And so does a first one when nothing is being measured."""
    with Stopper() as stopper, stopper.measuring():
        os.kill(os.getpid(), signal.SIGINT)
        assert stopper.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with Stopper() as stopper, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert not stopper.requested
