"""`doctor`: what broca can use on this machine, what is missing, and the command that fixes it."""

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from broca.errors import BadInput, first_line
from broca.results.checks import CheckState, Diagnosis, MachineCheck

CORE = ("numpy", "torch", "transformers", "datasets", "lm_eval")
"""Modules that every run imports."""

DEVELOPMENT = {"dev", "docs"}
"""Extras that a user does not need."""

_GIB = 2**30


def doctor() -> Diagnosis:
    """Checks everything that broca needs or can use on this machine, without changing anything.

    It makes no network call. It loads a shipped model and tests its gates.

    Returns:
        Every check, with the command that fixes what is missing.
    """
    versions = f"Python {platform.python_version()}, broca {version('broca')}"
    checks = [MachineCheck("versions", "ok", versions), *map(_module, CORE)]
    if all(check.state != "broken" for check in checks):
        looks = {"gates": _gates, "devices": _devices, "isolation for code tasks": _isolation}
        checks += [_looked(name, look) for name, look in looks.items()]
    return Diagnosis(checks=(*checks, *_extras()))


def _module(name: str) -> MachineCheck:
    """Checks that a module can be imported."""
    package = name.replace("_", "-")
    mend = f"{sys.executable} -m pip install -I {package}"
    try:
        import_module(name)
        return MachineCheck(package, "ok", version(package))
    except PackageNotFoundError:
        return MachineCheck(package, "broken", "imported, but its version is unknown", mend)
    except Exception as error:  # noqa: BLE001  # a broken installation may raise anything
        return MachineCheck(package, "broken", f"cannot be imported: {first_line(error)}", mend)


def _looked(name: str, look: Callable[[], MachineCheck]) -> MachineCheck:
    """Runs a check that may raise any exception on an unknown machine."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001  # the check reports it
        state: CheckState = "broken" if name == "gates" else "missing"
        mend = f"{sys.executable} -m pip install -I broca torch transformers"
        return MachineCheck(name, state, first_line(error), mend)


def _gates() -> MachineCheck:
    """Loads a shipped model, which includes the self-test of its gates."""
    from broca.models import load

    gated = load("reference-small", device="cpu", offline=True)
    return MachineCheck("gates", "ok", f"{gated.name} is loaded and passes its self-test")


def _devices() -> MachineCheck:
    import torch

    threads = f"CPU with {torch.get_num_threads()} threads"
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        remedy = "" if built else "https://pytorch.org/get-started installs torch for a GPU"
        return MachineCheck("devices", "ok", f"{threads}, no GPU", remedy)
    gpus = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        name = torch.cuda.get_device_name(number)
        gpus.append(f"cuda:{number} {name}, {free / _GIB:.1f} of {total / _GIB:.1f} GiB free")
    return MachineCheck("devices", "ok", "; ".join([*gpus, threads]))


def _isolation() -> MachineCheck:
    """Checks by trial that programs that models write can be isolated."""
    from broca.tasks.sandbox import ISOLATION, Sandbox

    name = "isolation for code tasks"
    try:
        Sandbox()
        return MachineCheck(name, "ok", ISOLATION)
    except BadInput as error:
        remedy = "apt install bubblewrap"
        if sys.platform != "linux":
            remedy = "run tasks that execute code on Linux, with bubblewrap"
        elif shutil.which("bwrap"):
            remedy = "allow users to create namespaces: sysctl kernel.unprivileged_userns_clone=1"
        return MachineCheck(name, "missing", str(error), remedy)


def _extras() -> Iterator[MachineCheck]:
    """Checks every extra of the package except those for its developers."""
    from packaging.requirements import Requirement

    def packages(extra: str) -> list[str]:
        """Returns what an installation with an extra, or with none, requires here."""
        return [
            need.name
            for need in map(Requirement, requires("broca") or ())
            if need.marker is None or need.marker.evaluate({"extra": extra})
        ]

    for extra in metadata("broca").get_all("Provides-Extra") or ():
        for package in dict.fromkeys(packages(extra)) if extra not in DEVELOPMENT else ():
            if package in packages(""):
                continue
            try:
                yield MachineCheck(extra, "ok", f"{package} {version(package)}")
            except PackageNotFoundError:
                remedy = f"{sys.executable} -m pip install 'broca[{extra}]'"
                yield MachineCheck(extra, "missing", f"{package} is not installed", remedy)
