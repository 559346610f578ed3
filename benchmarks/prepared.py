"""The settings of a benchmark's process, which must be made before torch is imported."""

from __future__ import annotations

import os

from broca.executors.process import tune_process


def prepare() -> None:
    """Turns the libraries' progress bars and warnings off, and tunes as the command line does.

    Values in the environment are kept.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    tune_process()
