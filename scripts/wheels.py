"""Functions that the scripts share: virtual environments, and a trial of the installed wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MOST_BYTES = 8_000_000
"""Maximum size of a released wheel."""

TRIAL = (
    ("broca", "--version"),
    (
        "broca", "--offline", "localize", "reference-small", "--task", "sorting", "--others",
        "capitals", "--method", "cs-stratified", "--rows", "200", "--items", "8", "--out", "out",
    ),
    ("broca", "refit", "out", "--recovery", "ridge"),
    ("broca", "doctor", "--quiet"),
)  # fmt: skip
"""Commands that must work after an installation: load, gate, search, prove, report, refit."""


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Runs a command and returns its output.

    Raises:
        RuntimeError: The command failed; the message ends with its output.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{tail}")
    return done.stdout


def environment(folder: Path, python: str | Path = sys.executable) -> Path:
    """Creates a new virtual environment and returns its folder of programs."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / "bin"


def build(folder: Path) -> tuple[Path, Path]:
    """Builds the wheel and the source distribution into a folder.

    Returns:
        The wheel and the source distribution.

    Raises:
        RuntimeError: The wheel is too large.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # left by an earlier build
    bin_ = environment(ROOT / "build" / "builder")
    run(bin_ / "python", "-m", "pip", "install", "--quiet", "build")
    run(bin_ / "python", "-m", "build", "--outdir", folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise RuntimeError(f"{wheel.name} has {size:,} bytes, more than {MOST_BYTES:,}")
    print(f"{wheel.name}: {size:,} bytes", flush=True)
    return wheel, source


def try_out(bin_: Path, folder: Path) -> None:
    """Runs the trial commands of an installation in an empty folder.

    Raises:
        RuntimeError: One of them failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for program, *words in TRIAL:
        run(bin_ / program, *words, cwd=folder)
