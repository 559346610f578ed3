"""A process that kills itself in the middle of a study."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

_PROGRAM = """
import json, os, signal, sys
import broca

verb, stage, options = json.loads(sys.argv[1])

def die(title, progress):
    if progress is not None and progress.done and title.startswith(stage):
        os.kill(os.getpid(), signal.SIGKILL)

getattr(broca, verb)(*options.pop("given"), **options, on_progress=die)
"""


def killed(verb, *given, stage, **options):
    """Starts a verb in a process of its own, which SIGKILL ends within a stage of that name."""
    asked = json.dumps([verb, stage, {"given": given, **options}])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, asked],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
