"""The process of the command line: `broca` and `python -m broca`."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line; Ctrl+C and SIGTERM end it at any time, and close what it opened."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            signal.signal(signal.SIGINT, _end)
        signal.signal(signal.SIGTERM, _end)
        from broca.cli import main as run_command_line  # takes a while

        run_command_line()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the command: at once while a module is imported, which may swallow any exception."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os._exit(128 + number)
        frame = frame.f_back
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
