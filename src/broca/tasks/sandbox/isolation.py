"""The ways to isolate a program from the machine, strongest first."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Isolation = Literal["bubblewrap", "kernel", "guard"]

ISOLATIONS: dict[Isolation, str] = {
    "bubblewrap": "bubblewrap (namespaces of its own: no network, no files but Python's)",
    "kernel": "Landlock and seccomp (no network, no other process, no files but Python's)",
    "guard": "Python's audit events (they stop programs that err, not programs that attack)",
}
"""Descriptions of the isolations for the reader of a result, strongest first."""

_MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """The resource limits of a program.

    Attributes:
        cpu_s: Processor time of each of its processes, in seconds.
        wall_s: Wall time in seconds; more than `cpu_s`, so that a busy machine does not change
            results.
        memory_mib: Address space of each of its processes, in MiB.
        processes: Number of processes and threads (under bubblewrap; elsewhere it cannot fork).
        file_mib: Size of a file in MiB; under bubblewrap also of all its files together.
        open_files: Number of open files of each of its processes.
    """

    cpu_s: int = 3
    wall_s: float = 30.0
    memory_mib: int = 1024
    processes: int = 8
    file_mib: int = 16
    open_files: int = 64


@dataclass(frozen=True)
class Launch:
    """The command that starts a program.

    Attributes:
        command: The command line.
        environment: The complete environment.
    """

    command: tuple[str, ...]
    environment: dict[str, str]


def launch(
    isolation: Isolation, limits: Limits, *, folder: str, slot: int, token_length: int
) -> Launch:
    """Returns the command that starts the worker in isolation.

    Args:
        isolation: The way of isolation.
        limits: Its resource limits.
        folder: An empty folder of its own; bubblewrap replaces it by a folder in memory.
        slot: Number below 256 that distinguishes concurrent programs.
        token_length: Length of the token in bytes.
    """
    boxed = isolation == "bubblewrap"
    root = os.geteuid() == 0
    place = "/tmp" if boxed else folder
    settings: dict[str, Any] = {
        "isolation": isolation,
        "folder": place,
        "path": _site_folders(),
        "readable": [*_readable(), "/dev/null", "/dev/urandom"],
        "token": token_length,
        # the limit of processes applies per user, and not to root
        "user": (1 << 30) + (os.getpid() << 8) + slot if boxed and root else None,
        "limits": _resource_limits(limits, count_processes=boxed),
    }
    worker = (
        _interpreter(), "-s", "-S", "-P", "-B", "-c",
        f"{_worker_source()}\nimport json\nmain(json.loads({json.dumps(settings)!r}))",
    )  # fmt: skip
    environment = {
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "HOME": place,
        "TMPDIR": place,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return Launch((*_bubblewrap(limits, root=root), *worker) if boxed else worker, environment)


def bubblewrap_path() -> str | None:
    """Returns the path of `bwrap`, if it is installed."""
    return shutil.which("bwrap")


def possible() -> list[Isolation]:
    """Returns the isolations that this machine may support, strongest first, untested."""
    if os.name != "posix":
        return []
    isolations: list[Isolation] = ["guard"]
    if sys.platform == "linux" and platform.machine() == "x86_64":
        isolations.insert(0, "kernel")
    if sys.platform == "linux" and bubblewrap_path():
        isolations.insert(0, "bubblewrap")
    return isolations


def _bubblewrap(limits: Limits, *, root: bool) -> tuple[str, ...]:
    # root keeps its user namespace: the worker gets its own user, whose processes are limited
    enclosure: list[str] = [bubblewrap_path() or "bwrap", "--die-with-parent"]
    if root:
        enclosure += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        enclosure += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN"):
            enclosure += ["--cap-add", capability]
    else:
        enclosure += ["--unshare-all"]
    # the parent of a bound folder would have the real permissions, often private to root
    above = {str(parent) for path in _readable() for parent in Path(path).parents}
    for parent in sorted(above - {"/"}):
        enclosure += ["--perms", "0755", "--dir", parent]
    for path in _readable():
        enclosure += ["--ro-bind", path, path]
    for device in ("/dev/null", "/dev/urandom"):
        enclosure += ["--dev-bind", device, device]
    enclosure += ["--size", str(limits.file_mib * _MIB), "--tmpfs", "/tmp", "--remount-ro", "/"]
    return (*enclosure, "--chdir", "/tmp", "--")


def _resource_limits(limits: Limits, *, count_processes: bool) -> dict[str, int]:
    counted = {"RLIMIT_NPROC": limits.processes} if count_processes else {}
    return {
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_mib * _MIB,
        "RLIMIT_FSIZE": limits.file_mib * _MIB,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
        **counted,
    }


@cache
def _worker_source() -> str:
    return (Path(__file__).parent / "worker.py").read_text(encoding="utf-8")


@cache
def _interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


@cache
def _site_folders() -> list[str]:
    """Returns the folders of installed packages, which programs may import, as under lm-eval."""
    return _existing([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])


def _readable() -> list[str]:
    """Returns all paths that a program may read: Python, its packages, shared libraries."""
    return [*_system_paths(), *_python_paths(), *_site_folders()]


@cache
def _python_paths() -> list[str]:
    """Returns the paths of the interpreter, its standard library and its shared libraries."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    base |= {"installed_base": sys.base_prefix, "installed_platbase": sys.base_exec_prefix}
    library = sysconfig.get_config_var("LIBDIR") or ""
    paths = [
        _interpreter(),
        sysconfig.get_path("stdlib", vars=base),
        sysconfig.get_path("platstdlib", vars=base),
        *(str(file) for file in sorted(Path(library).glob("libpython3*")) if library),
    ]
    return _existing(paths)


@cache
def _system_paths() -> list[str]:
    """Returns the paths of the system's shared libraries and their loader."""
    folders = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"]
    return _existing(folders)


def _existing(paths: Sequence[str | None]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if path and os.path.exists(path)]
