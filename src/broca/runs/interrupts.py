"""Ctrl+C ends a run after the batch that is being measured; a second one ends it at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from broca.errors import Interrupted


class Stopper:
    """Delays the first Ctrl+C until the current rows are measured and kept.

    Args:
        on_request: Called when the user presses Ctrl+C.
    """

    def __init__(self, on_request: Callable[[], None] = lambda: None) -> None:
        self._on_request = on_request
        self._busy = False
        self._before: Any = None
        self.requested = False
        """Whether the user pressed Ctrl+C."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """A context in which a first Ctrl+C is delayed."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def checkpoint(self) -> None:
        """Ends the run if the user pressed Ctrl+C.

        Raises:
            Interrupted: The user pressed Ctrl+C.
        """
        if self.requested:
            raise Interrupted("interrupted: everything that was measured is kept")

    def _handle(self, *_: object) -> None:
        if not self._busy or self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._on_request()
