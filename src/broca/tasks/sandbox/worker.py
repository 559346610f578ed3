"""Runs a program inside the sandbox and reports on a pipe that it ran to its end.

Its source is passed to a bare interpreter (`python -c`), so that it imports nothing of broca. It
reads the program from standard input, which then contains a token that the parent draws for every
program. It reads the token and writes it back only after the program's last statement. A program
that exits early, raises, or prints that it passed does not return the token.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from typing import Any

_LANDLOCK_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute (for libraries), read files, list folders
_LANDLOCK_FILE = 1 << 1 | 1 << 2  # read and write a file
_NO_NEW_PRIVILEGES, _PARENT_DEATH, _SECCOMP = 38, 1, 22
_EPERM, _ENOSYS = 1, 38

# System calls of x86-64 that a program must not make where no namespace stands around it: the
# network, other processes, and what Landlock does not cover (metadata of files).
_FORBIDDEN = {
    "socket": 41, "connect": 42, "ptrace": 101, "fork": 57, "vfork": 58, "execve": 59,
    "execveat": 322, "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129,
    "rt_tgsigqueueinfo": 297, "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438,
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93,
    "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235, "futimesat": 261,
    "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "mount": 165, "umount2": 166, "chroot": 161,
    "unshare": 272, "setns": 308, "io_uring_setup": 425, "bpf": 321, "perf_event_open": 298,
    "process_vm_readv": 310, "process_vm_writev": 311, "add_key": 248, "request_key": 249,
    "keyctl": 250, "setpriority": 141, "sched_setaffinity": 203, "sched_setscheduler": 144,
    "sched_setparam": 142, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "userfaultfd": 323, "prlimit64": 302, "setuid": 105, "setresuid": 117, "setsid": 112,
    "setpgid": 109,
}  # fmt: skip
_CLONE, _CLONE3, _CLONE_THREAD = 56, 435, 0x10000


def main(settings: dict[str, Any]) -> None:
    """Reads a program, isolates it, runs it, and writes the token if it finished."""
    program = _read_program()
    keys, verdict = os.dup(0), os.dup(1)
    with open(os.devnull, "r+b", buffering=0) as nothing:
        for descriptor in (0, 1, 2):
            os.dup2(nothing.fileno(), descriptor)
    sys.argv = [""]
    sys.path[:] = [path for path in sys.path if path] + settings["path"]
    import random

    random.seed(0)  # equal programs have equal verdicts
    _enclose(settings)
    length: int = settings["token"]
    _execute(program, (os.read, os.write, keys, verdict, length))


def _execute(program: str, reply: tuple[Any, Any, int, int, int]) -> None:
    exec(program, {})
    read, write, keys, verdict, length = reply
    write(verdict, read(keys, length))


def _read_program() -> str:
    """Reads the program: a line with its length in bytes, then exactly its text."""
    header = b""
    while not header.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise EOFError
        header += byte
    unread, parts = int(header), []
    while unread:
        part = os.read(0, unread)
        if not part:
            raise EOFError
        parts.append(part)
        unread -= len(part)
    return b"".join(parts).decode("utf-8")


def _enclose(settings: dict[str, Any]) -> None:
    """Sets limits and identity, and restricts access if no namespace does."""
    os.chdir(settings["folder"])
    os.umask(0o077)
    for name, value in settings["limits"].items():
        kind = getattr(resource, name, None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))
    user = settings["user"]
    if user is not None:
        os.chown(settings["folder"], user, user)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    if settings["isolation"] == "kernel":
        _enclose_by_kernel(settings["readable"], settings["folder"])
    elif settings["isolation"] == "guard":
        _enclose_by_guard(settings["readable"], settings["folder"])


def _enclose_by_kernel(readable: list[str], folder: str) -> None:
    """Restricts files by Landlock and system calls by seccomp; neither needs privileges."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def call(function: Any, *arguments: Any) -> int:
        done = int(function(*arguments))
        if done < 0:
            raise OSError(ctypes.get_errno(), "the kernel refused to isolate")
        return done

    call(libc.prctl, _PARENT_DEATH, 9, 0, 0, 0)
    call(libc.prctl, _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _drop_capabilities(ctypes, libc, call)
    _landlock(ctypes, libc, call, readable, folder)
    _seccomp(ctypes, libc, call)


def _drop_capabilities(ctypes: Any, libc: Any, call: Callable[..., int]) -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    call(libc.capset, header, (ctypes.c_uint32 * 6)())


def _landlock(
    ctypes: Any, libc: Any, call: Callable[..., int], readable: list[str], folder: str
) -> None:
    create, add, restrict = 444, 445, 446
    version = call(libc.syscall, create, None, 0, 1)
    rights = (1 << 13) - 1
    rights |= (1 << 13) * (version >= 2) | (1 << 14) * (version >= 3) | (1 << 15) * (version >= 5)
    handled = (ctypes.c_uint64 * 3)(rights, 0, 0)
    size = 8
    if version >= 4:
        handled[1], size = 0b11, 16  # TCP: bind, connect
    if version >= 6:
        handled[2], size = 0b11, 24  # abstract sockets, signals
    rules = call(libc.syscall, create, handled, size, 0)

    def allow(path: str, access: int) -> None:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = (access & rights).to_bytes(8, "little") + opened.to_bytes(4, "little")
        call(libc.syscall, add, rules, 1, rule, 0)
        os.close(opened)

    for path in readable:
        if os.path.exists(path):
            allow(path, _LANDLOCK_READ if os.path.isdir(path) else _LANDLOCK_FILE)
    allow(folder, rights)
    call(libc.syscall, restrict, rules, 0)
    os.close(rules)


def _seccomp(ctypes: Any, libc: Any, call: Callable[..., int]) -> None:
    """Makes forbidden system calls fail with EPERM, by a BPF filter."""
    load, equal, at_least, masked, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allowed, refuse = 0x7FFF0000, 0x00050000
    code: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4),
        (equal, 1, 0, 0xC000003E),  # x86-64 and nothing else
        (give, 0, 0, refuse | _EPERM),
        (load, 0, 0, 0),
        (at_least, 0, 1, 0x40000000),  # nor its 32-bit variant
        (give, 0, 0, refuse | _EPERM),
        (equal, 0, 1, _CLONE3),
        (give, 0, 0, refuse | _ENOSYS),  # libc then uses clone, whose flags can be read
        (equal, 0, 4, _CLONE),
        (load, 0, 0, 16),
        (masked, 0, 1, _CLONE_THREAD),
        (give, 0, 0, allowed),
        (give, 0, 0, refuse | _EPERM),
    ]
    for number in _FORBIDDEN.values():
        code += [(equal, 0, 1, number), (give, 0, 0, refuse | _EPERM)]
    code.append((give, 0, 0, allowed))

    class Program(ctypes.Structure):  # type: ignore[misc]
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    text = b"".join(
        operation.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little")
        for operation, yes, no, value in code
    )
    call(libc.prctl, _SECCOMP, 2, ctypes.byref(Program(len(code), text)), 0, 0)


def _enclose_by_guard(readable: list[str], folder: str) -> None:
    """Restricts access by Python's audit events, which stop mistakes, not attacks."""
    inside, outside = os.path.realpath(folder), [os.path.realpath(path) for path in readable]
    separator, real, exists, as_text = os.sep, os.path.realpath, os.path.exists, os.fsdecode
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    refused = (
        "socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.system",
        "os.kill", "os.setuid", "ctypes.", "signal.pthread_kill", "resource.", "fcntl.",
        "mmap.", "sqlite3.", "pty.", "webbrowser.", "sys.addaudithook",
    )  # fmt: skip
    by_folder = (
        "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod",
        "os.chown", "os.utime",
    )  # fmt: skip
    touching = (
        *by_folder, "os.truncate", "os.chdir", "os.setxattr", "os.removexattr", "os.listxattr",
        "os.getxattr", "os.lchmod",
    )  # fmt: skip

    def lies_in(path: str, place: str) -> bool:
        return path == place or path.startswith(place + separator)

    def is_inside(descriptor: int) -> bool:
        """Whether paths relative to an open folder, or to none, lie in the program's folder."""
        if descriptor == -1:
            return True
        opened = f"/proc/self/fd/{descriptor}"
        return exists(opened) and lies_in(real(opened), inside)

    def guard(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(refused):
            raise PermissionError(event)
        paths = [path for path in arguments if isinstance(path, (str, bytes, os.PathLike))]
        if event in touching:
            if event in by_folder and not is_inside(arguments[-1]):
                raise PermissionError(event)
            if not paths or not all(lies_in(real(as_text(path)), inside) for path in paths):
                raise PermissionError(event)
        elif event in ("open", "os.listdir", "os.scandir"):
            if not isinstance(arguments[0], (str, bytes, os.PathLike)):
                return
            path = real(as_text(arguments[0]))
            flags = arguments[2] if event == "open" else 0
            if lies_in(path, inside) or path in (os.devnull, "/dev/urandom"):
                return
            if flags & writing or not any(lies_in(path, place) for place in outside):
                raise PermissionError(event)

    sys.addaudithook(guard)
