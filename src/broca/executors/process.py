"""Process settings that make small models on a CPU fast; the command line uses all of them.

A Python program in which broca imports torch gets `spin_briefly`. A program that imports torch
before broca, or needs the memory settings too, calls `tune_process` first.
"""

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_KEPT_BYTES = 1 << 30


def spin_briefly() -> None:
    """Keeps waiting threads from spinning; OpenMP reads this once, when torch is imported.

    Threads that spin for a long time stall each other as soon as another program needs a core;
    threads that never spin wake slowly between the many small steps of a model. A value in the
    environment is kept.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def tune_process() -> None:
    """Keeps waiting threads from spinning, and freed memory for the next batch.

    Memory that is returned to the system after every batch is allocated again page by page, which
    costs a small model a fifth of its speed (on glibc only; elsewhere nothing is changed).
    """
    spin_briefly()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
