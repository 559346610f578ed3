"""Settings of the process that make small models on a CPU fast; the command line makes them.

A Python program that wants them calls `tune_process()` before it imports torch.
"""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_KEPT_BYTES = 1 << 30


def tune_process() -> None:
    """Makes threads wait sensibly and keeps freed memory for the next batch.

    Threads that wait by spinning for long stall each other as soon as another program wants a core;
    threads that never spin are slow to wake between the many small steps of a model. Memory that
    goes back to the system after every batch comes back page by page, which costs a small model a
    fifth of its speed (glibc alone; elsewhere nothing is changed).
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
