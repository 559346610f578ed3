"""A limit of time for what files of others make this process do."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from broca.errors import BadInput


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Ends what runs within the context, matching by regular expressions too.

    Only the main thread can be interrupted; in other threads there is no limit.

    Args:
        seconds: The limit.
        what: What takes the time, as the message names it.

    Raises:
        BadInput: The time is over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> NoReturn:
        raise BadInput(f"{what} took more than {seconds:g} s and was ended: check its file")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
