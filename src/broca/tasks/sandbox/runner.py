"""Runs programs concurrently, each in its own isolation."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from broca.errors import BadInput
from broca.tasks.sandbox.isolation import ISOLATIONS, Isolation, Limits, launch, possible

ProgramOutcome = Literal["passed", "failed", "timed out"]
"""`passed`: the program ran to its last statement; `timed out`: it was killed; else `failed`."""

_TOKEN_BYTES = 32
_GRACE_S = 0.2
_OUT_OF_TIME = {
    sign
    for number in (signal.SIGXCPU, signal.SIGKILL)
    for sign in (-number, 128 + number)  # bubblewrap reports signals as 128 + their number
}


class Sandbox:
    """Runs untrusted Python programs.

    Args:
        limits: Resource limits of a program.
        isolation: The way of isolation; by default the strongest that works on this machine.
        workers: Maximum number of concurrent programs; by default the number of cores.

    Raises:
        BadInput: No isolation works on this machine, or the requested one does not.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        isolation: Isolation | None = None,
        workers: int | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.workers = min(workers or os.cpu_count() or 1, 256)
        self._slots: SimpleQueue[int] = SimpleQueue()
        for slot in range(self.workers):
            self._slots.put(slot)
        for candidate in possible() if isolation is None else [isolation]:
            if self._holds(candidate):
                self.isolation: Isolation = candidate
                return
        subject = "nothing" if isolation is None else f"not '{isolation}'"
        raise BadInput(
            f"{subject} encloses programs on this machine: install bubblewrap, or leave tasks that "
            "execute code out"
        )

    @property
    def description(self) -> str:
        """Description of the isolation, for the reader of a result."""
        return ISOLATIONS[self.isolation]

    def run(self, program: str) -> ProgramOutcome:
        """Runs a program; equal programs have equal verdicts.

        The behaviour of the program only affects its verdict and raises no exception.
        """
        return self._run(program, self.isolation)

    def run_all(self, programs: Sequence[str]) -> list[ProgramOutcome]:
        """Runs several programs, `workers` at a time; returns verdicts in their order."""
        if len(programs) < 2:
            return [self.run(program) for program in programs]
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(self.run, programs))

    def _run(self, program: str, isolation: Isolation) -> ProgramOutcome:
        slot = self._slots.get()
        try:
            if isolation == "bubblewrap":
                return self._run_in("", program, isolation, slot)
            with tempfile.TemporaryDirectory(
                prefix="broca-code-", ignore_cleanup_errors=True
            ) as folder:
                return self._run_in(os.path.realpath(folder), program, isolation, slot)
        finally:
            self._slots.put(slot)

    def _run_in(self, folder: str, program: str, isolation: Isolation, slot: int) -> ProgramOutcome:
        token = secrets.token_hex(_TOKEN_BYTES // 2).encode()
        how = launch(isolation, self.limits, folder=folder, slot=slot, token_length=_TOKEN_BYTES)
        # lone surrogates, which are not UTF-8, become question marks
        text = program.encode("utf-8", errors="replace")
        process = subprocess.Popen(
            how.command,
            env=how.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        passed = False
        deadline = time.monotonic() + self.limits.wall_s
        try:
            _send(process.stdin.fileno(), b"%d\n%s%s" % (len(text), text, token), deadline)
            answer = _receive(process.stdout.fileno(), _TOKEN_BYTES, deadline)
            passed = secrets.compare_digest(answer, token)
        finally:
            late = time.monotonic() >= deadline
            ended = _end(process, wait_s=0.0 if passed else _GRACE_S)
            process.stdin.close()
            process.stdout.close()
        if passed:
            return "passed"
        return "timed out" if late or (ended in _OUT_OF_TIME) else "failed"

    def _holds(self, isolation: Isolation) -> bool:
        """Tests an isolation: a harmless program must pass, those that reach outside must fail."""
        if isolation not in possible():
            return False
        if self._run("import math\nassert math.gcd(4, 6) == 2", isolation) != "passed":
            return False
        with tempfile.TemporaryDirectory() as outside, socket.socket() as listening:
            file = Path(outside, "outside.txt")
            file.write_text("outside", encoding="utf-8")
            Path(outside).chmod(0o777)
            file.chmod(0o666)
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            attempts = (
                f"open({str(file)!r}).read()",
                f"open({str(file)!r}, 'a')",
                f"import os\nos.remove({str(file)!r})",
                f"import socket\nsocket.create_connection({listening.getsockname()!r})",
            )
            reached = [self._run(attempt, isolation) for attempt in attempts]
            return "passed" not in reached and file.read_text(encoding="utf-8") == "outside"


def _send(descriptor: int, data: bytes, deadline: float) -> None:
    """Writes all data unless the reader is gone or the deadline has passed."""
    os.set_blocking(descriptor, False)
    unsent = memoryview(data)
    while unsent:
        _, ready, _ = select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return
        try:
            unsent = unsent[os.write(descriptor, unsent) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return


def _receive(descriptor: int, length: int, deadline: float) -> bytes:
    """Reads `length` bytes, or fewer at the end or the deadline."""
    answer = b""
    while len(answer) < length:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(descriptor, length - len(answer)) if ready else b""
        if not part:
            break
        answer += part
    return answer


def _end(process: subprocess.Popen[bytes], *, wait_s: float) -> int | None:
    """Kills the process and its children, after waiting for its end.

    Returns:
        The exit status; None if it was killed.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait_s)
    status = process.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return status
