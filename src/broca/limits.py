"""A limit of time for what files of others make this process do."""

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from broca.errors import BadInput

SECONDS = 10.0
"""Time limit of a template, and of the filters of an answer."""


class _Late(BaseException):
    """The time of a thread is over; no `except Exception` of what runs in it catches this."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Ends what runs within the context.

    Python code ends in every thread. Matching by regular expressions ends in the main thread, and
    in others when it returns.

    Args:
        seconds: The limit.
        what: What takes the time, as the message names it.

    Raises:
        BadInput: The time is over.
    """
    late = BadInput(f"{what} took more than {seconds:g} s and was ended: check its file")
    if threading.current_thread() is not threading.main_thread():
        thread, interrupt = threading.get_ident(), ctypes.pythonapi.PyThreadState_SetAsyncExc
        timer = threading.Timer(
            seconds, lambda: interrupt(ctypes.c_ulong(thread), ctypes.py_object(_Late))
        )
        timer.start()
        try:
            yield
        except _Late:
            raise late from None
        finally:
            timer.cancel()
        return

    def end(*_: object) -> NoReturn:
        raise late

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
