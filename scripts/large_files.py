"""Refuses pictures above 200 kB and archives of any size; `pre-commit` passes the new files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MOST_BYTES = 200_000

PICTURES = {".gif", ".jpg", ".jpeg", ".png", ".svg", ".webp"}
ARCHIVES = {".7z", ".bz2", ".gz", ".parquet", ".sqlite", ".tar", ".tgz", ".xz", ".zip", ".zst"}


def refusals(files: list[Path]) -> list[str]:
    """Returns a line for each file that is refused."""
    lines = []
    for file in files:
        if file.suffix.lower() in ARCHIVES:
            lines.append(f"{file}: archives and data bases of results stay outside the repository")
        elif file.suffix.lower() in PICTURES and file.stat().st_size > MOST_BYTES:
            lines.append(f"{file}: {file.stat().st_size:,} bytes, a picture has {MOST_BYTES:,}")
    return lines


def tracked(folder: Path) -> list[Path]:
    """Returns the files of a folder that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=folder, capture_output=True, check=True)
    files = (folder / name for name in listed.stdout.decode().split("\0") if name)
    return [file for file in files if file.is_file()]


if __name__ == "__main__":
    wrong = refusals([Path(name) for name in sys.argv[1:]] or tracked(Path()))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
