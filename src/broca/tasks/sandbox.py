"""What a task's file and the programs that a model writes may not do.

Templates of task files are rendered in jinja's sandbox, with a time limit; data at addresses are
fetched only if allowed. Python functions of a task (`!function`) are not confined: who names the
folder of a task runs them.

Every program of a model runs in a bare Python of its own, with resource limits. bubblewrap gives it
namespaces of its own: no network, no other processes, no files but Python's and a small folder in
memory.
"""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import datasets
import lm_eval.utils
import yaml
from datasets.features.features import require_decoding
from jinja2 import Template
from jinja2.sandbox import SandboxedEnvironment

from broca.errors import BadInput
from broca.limits import SECONDS, time_limit


class _LimitedTemplate(Template):
    """A template whose rendering has a time limit."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        with time_limit(SECONDS, "a template of a task"):
            return super().render(*args, **kwargs)


TEMPLATES: Any = SandboxedEnvironment(
    loader=lm_eval.utils.env.loader,
    undefined=lm_eval.utils.env.undefined,
    keep_trailing_newline=lm_eval.utils.env.keep_trailing_newline,
)
"""jinja's sandbox with lm-eval's filters, in which lm-eval renders from now on."""

TEMPLATES.filters.update(lm_eval.utils.env.filters)
TEMPLATES.template_class = _LimitedTemplate
# lm-eval compiles a template again for every document and score, which takes longer than running a
# small model
TEMPLATES.from_string = lru_cache(4096)(TEMPLATES.from_string)
lm_eval.utils.env = TEMPLATES


@contextmanager
def fetching(allowed: bool, what: str) -> Iterator[None]:
    """Refuses data at addresses within this context, unless they are allowed.

    Columns of images and of other media, whose rows may be addresses, are left out.

    Raises:
        BadInput: An address is named.
    """
    loads = {name: getattr(datasets, name) for name in ("load_dataset", "load_dataset_builder")}

    def checked(load: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        card = _card_of(str(args[0] if args else kwargs.get("path")))
        for address in filter(_is_address, _texts([args, kwargs, card])):
            raise BadInput(
                f"{what} fetches '{address}', which its file names: allow it with `fetch_urls`"
            )
        data = load(*args, **kwargs)
        split = next(iter(data.values())) if isinstance(data, dict) else data
        features = getattr(split, "features", None) or {}  # a builder has no rows
        media = [name for name, kind in features.items() if require_decoding(kind)]
        return data.remove_columns(media) if media else data

    wrapped = loads if allowed else {name: partial(checked, load) for name, load in loads.items()}
    with patch.multiple(datasets, **wrapped):
        yield


def _is_address(text: str) -> bool:
    return "://" in text and not (text.startswith("hf://") and "::" not in text)


def _card_of(folder: str) -> list[Any]:
    """Returns the files of data that the card of a data set in a folder names."""
    found = []
    for name, card in (("README.md", r"---\s*?\n(.*?)\n---"), (".huggingface.yaml", "(.*)")):
        if os.path.isfile(file := os.path.join(folder, name)):
            front = re.match(card, Path(file).read_text(errors="replace"), re.DOTALL)
            found.append((yaml.safe_load(front[1]) or {}).get("configs") if front else None)
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


ProgramOutcome = Literal["passed", "failed", "timed out"]
"""`passed`: the program reached its last statement; `timed out`: it was ended; else `failed`."""

ISOLATION = "bubblewrap (namespaces of its own: no network, no files but Python's)"
"""Description of the isolation for the reader of a result."""

_WALL_S = 30.0  # long, so that a busy machine changes no outcome

_FILES_BYTES = 2**24

_LIMITS = {
    "RLIMIT_CPU": 3,  # seconds of each process
    "RLIMIT_AS": 2**30,
    "RLIMIT_NPROC": 8,
    "RLIMIT_FSIZE": _FILES_BYTES,
    "RLIMIT_NOFILE": 64,
    "RLIMIT_CORE": 0,
}

_SITE = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]

_READABLE = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", sys.base_prefix, *_SITE]

_WORKER = """
import os, resource, sys

def main(length, limits, user, path):
    for name, most in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        most = most if hard < 0 else min(most, hard)
        resource.setrlimit(kind, (most, most))
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    program = b""
    while len(program) < length:
        program += os.read(0, length - len(program))
    read, write, leave, token, answer = os.read, os.write, os._exit, os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.argv, sys.path[:] = [""], [*filter(None, sys.path), *path]
    import random

    random.seed(0)  # equal programs have equal outcomes
    exec(program.decode("utf-8", "surrogatepass"), {})  # of bytes, a comment may name an encoding
    write(answer, read(token, 64))
    leave(0)
"""
"""Reads a program and runs it, then reads a token and writes it: a program that ends early, raises
or prints cannot have written it."""

_FOLDER = "/tmp/program"
"""Folder of a program within the enclosure, empty at its start."""

_OUT_OF_TIME = {-signal.SIGKILL, -signal.SIGXCPU, 128 + signal.SIGKILL, 128 + signal.SIGXCPU}
"""Exit statuses at the limit of processor time; bubblewrap adds 128 to a signal."""


class Sandbox:
    """Runs untrusted Python programs under bubblewrap.

    Raises:
        BadInput: bubblewrap is missing, or does not work on this machine.
    """

    def __init__(self) -> None:
        self._bwrap = shutil.which("bwrap") or ""
        if not self._bwrap or self.run("import math\nassert math.gcd(4, 6) == 2") != "passed":
            refused = "is not installed (apt install bubblewrap)"
            if self._bwrap:
                refused = "may not make namespaces on this machine"
            raise BadInput(
                f"programs that models write need bubblewrap, which {refused}; there is no other "
                "way to run such tasks"
            )

    def run_all(self, programs: Sequence[str]) -> list[ProgramOutcome]:
        """Runs several programs, as many at a time as there are cores; equal ones end equally."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self.run, programs))

    def run(self, program: str) -> ProgramOutcome:
        """Runs a program, whose behaviour only affects the outcome and raises no exception."""
        root = os.geteuid() == 0
        # the limit of processes applies to a user other than root, and to its programs together
        user = (1 << 30) + threading.get_native_id() if root else 0
        text = program.encode("utf-8", "surrogatepass")
        token = secrets.token_hex(32).encode()
        settings = json.dumps([len(text), _LIMITS, user, _SITE])
        command = [
            self._bwrap, *_enclosure(root=root),
            os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
            *("-s", "-S", "-P", "-B", "-c", f"{_WORKER}\nmain(*{settings})"),
        ]  # fmt: skip
        environment = {
            "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "HOME": _FOLDER, "TMPDIR": _FOLDER,
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        with tempfile.TemporaryFile() as answer:  # limited in size, as a pipe is not
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=answer,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            try:
                process.communicate(text + token, _WALL_S)
            except subprocess.TimeoutExpired:
                return "timed out"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            answer.seek(0)
            if secrets.compare_digest(answer.read(len(token) + 1), token):
                return "passed"
            return "timed out" if process.returncode in _OUT_OF_TIME else "failed"


def _enclosure(*, root: bool) -> list[str]:
    """Returns bubblewrap's options.

    Without the user namespace of `--unshare-all`, root can become another user in the sandbox.
    """
    options = ["--die-with-parent", "--new-session", "--unshare-all"]
    if root:
        options[-1:] = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        options += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    bound = [("--ro-bind-try", path) for path in dict.fromkeys(_READABLE)]
    bound += [("--dev-bind", device) for device in ("/dev/null", "/dev/urandom")]
    options += ["--perms", "1777", "--size", str(_FILES_BYTES), "--tmpfs", "/tmp"]
    # after the private /tmp, below which the packages of this process may be
    above = {str(parent) for _, path in bound for parent in Path(path).parents}
    for parent in sorted(above - {"/", "/tmp"}):  # which bubblewrap would make private to root
        options += ["--perms", "0755", "--dir", parent]
    for how, path in bound:
        options += [how, path, path]
    options += ["--perms", "0777", "--dir", _FOLDER]
    return [*options, "--remount-ro", "/", "--chdir", _FOLDER, "--"]
