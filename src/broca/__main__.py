"""The process of the command line: `broca` and `python -m broca`."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line; Ctrl+C and SIGTERM end it at any time, and close what it opened."""
    interrupted = False

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        from broca.cli import main as run_command_line  # takes a while

        run_command_line()
    except (KeyboardInterrupt, Exception):  # a library that was being imported raises its own
        if not interrupted:
            raise
        sys.exit(130)


if __name__ == "__main__":
    main()
