"""Settings of the process that make small models on a CPU fast; the command line makes them all.

A Python program in which broca is what imports torch gets `spin_briefly`; one that imports torch
before it uses broca, or wants the settings of memory too, calls `tune_process` before that.
"""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_KEPT_BYTES = 1 << 30


def spin_briefly() -> None:
    """Keeps waiting threads from spinning; OpenMP reads this once, when torch is imported.

    Threads that wait by spinning for long stall each other as soon as another program wants a core;
    threads that never spin are slow to wake between the many small steps of a model. A value that
    the environment has stays.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def tune_process() -> None:
    """Keeps waiting threads from spinning, and freed memory for the next batch.

    Memory that goes back to the system after every batch comes back page by page, which costs a
    small model a fifth of its speed (glibc alone; elsewhere nothing is changed).
    """
    spin_briefly()
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
