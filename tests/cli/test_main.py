"""The entry point: its version, and runs under any locale."""

import os
import re
import subprocess
import sys
from pathlib import Path

from cli.running import broca


def test_version_is_printed():
    """`broca --version` prints the name and a version of three numbers."""
    assert re.fullmatch(r"broca \d+\.\d+\.\d+\n", broca("--version").stdout)


def test_locale_need_not_be_utf8(tmp_path):
    """The report and the table can be written under the C locale."""
    environment = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "OMP_NUM_THREADS": "1",
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [
            sys.executable, "-c", "from broca.cli import main; main()", "localize",
            "reference-small", "--task", "sorting", "--others", "", "--method", "one-shot",
            "--items", "8", "--limit", "40", "--out", "out",
        ],
        capture_output=True, env=environment, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert Path(tmp_path, "out", "report.html").is_file()


def test_closed_streams_are_one_line():
    """Without stdout the command ends with 1 and a line; without stderr too, nothing is said."""
    for closed, said in (((">&-",), b"broca: stdout is closed"), ((">&-", "2>&-"), b"")):
        command = " ".join([sys.executable, "-m", "broca", "tasks", *closed])
        ended = subprocess.run(command, shell=True, capture_output=True, check=False)
        assert ended.returncode == 1
        assert ended.stderr.startswith(said)
        assert ended.stderr.count(b"\n") == (1 if said else 0)
