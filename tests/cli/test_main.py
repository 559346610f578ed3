"""The entry point: its version, and runs under any locale."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.running import broca


def test_version_is_printed():
    """`broca --version` prints the name and a version of three numbers."""
    assert re.fullmatch(r"broca \d+\.\d+\.\d+\n", broca("--version").stdout)


@pytest.mark.long
def test_locale_need_not_be_utf8(tmp_path):
    """The report and the table can be written under the C locale."""
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "OMP_NUM_THREADS": "1"}
    environment |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
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


@pytest.mark.long
@pytest.mark.parametrize("words", ["", "tasks", "published --json", "--help", "lm-eval --help"])
def test_stdout_that_takes_no_more_is_no_traceback(words):
    """On a full disk a line says so; a reader that has ended is no error to speak of."""
    command = [sys.executable, "-m", "broca", *words.split()]
    reader, writer = os.pipe()
    os.close(reader)
    refusal = "broca: stdout cannot be written (No space left"
    with open("/dev/full", "w") as full, open(writer, "w") as unread:
        for stdout, said, code in ((full, refusal, 1), (unread, "", 141)):
            ended = subprocess.run(
                command, stdout=stdout, stderr=subprocess.PIPE, check=False, text=True
            )
            assert ended.returncode == code
            assert said in ended.stderr
            assert "Traceback" not in ended.stderr
            assert "Exception" not in ended.stderr


@pytest.mark.parametrize(("signal_", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_ctrl_c_and_sigterm_end_it_at_any_time(signal_, code, seconds):
    """From the first line of the package on, the exit code is the signal's, without a traceback.

    Before that line Python itself starts, and prints its own traceback.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "broca", "scan", "planted"], stdout=-1, stderr=-1, text=True
    ) as process:
        status = Path(f"/proc/{process.pid}/status")
        while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) >> 14 & 1:
            time.sleep(0.005)  # SIGTERM, signal 15, is not handled yet
        time.sleep(seconds)
        process.send_signal(signal_)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (code, -signal_)  # a shell shows both alike
    assert "Traceback" not in errors


def test_a_full_disk_anywhere_is_one_line(monkeypatch):
    """A file that cannot be written for want of space is named; other faults are raised."""

    def fails(error):
        def write(*_, **__):
            raise error

        monkeypatch.setattr("broca.list_tasks", write, raising=False)
        return broca("tasks")

    done = fails(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/d/report.html"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "broca: no space is left on the disk of '/d/report.html': free some, and give the command "
        "again"
    )
    with pytest.raises(OSError, match="something else"):
        fails(OSError(errno.EIO, "something else"))
