"""Installs the wheel on every supported Python here, with the oldest and the newest packages.

`make compat` runs it. The oldest packages are pinned to the lower bounds of pyproject.toml; the
newest are those that pip chooses. Both use the torch of constraints.txt, because other builds of
torch need gigabytes of CUDA libraries; `--torch 2.6.0` tries torch's lower bound.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from wheels import ROOT, build, environment, run, try_out

SUPPORTED = ((3, 11), (3, 12), (3, 13))

OUT = ROOT / "build" / "compat"


def lower_bounds(pyproject: Path, python: str) -> dict[str, str]:
    """Returns the lowest version of every package that one Python ("3.13") requires, by name.

    If several requirements of a package apply, the highest bound counts.

    Raises:
        ValueError: A requirement has no lower bound.
    """
    bounds: dict[str, Version] = {}
    for line in tomllib.loads(pyproject.read_text())["project"]["dependencies"]:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is not None and not marker.evaluate({"python_version": python}):
            continue
        lowest = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
        if not lowest:
            raise ValueError(f"'{line}' has no lower bound")
        if requirement.name in bounds:
            lowest.append(bounds[requirement.name])
        bounds[requirement.name] = max(lowest)
    return {package: str(bound) for package, bound in bounds.items()}


def pinned_torch(constraints: Path) -> str:
    """Returns the version of torch that is tested."""
    (line,) = (line for line in constraints.read_text().splitlines() if line.startswith("torch=="))
    return line.removeprefix("torch==")


def pythons() -> dict[tuple[int, int], str]:
    """Returns the supported versions of Python that this machine has, with their executables."""
    programs: dict[tuple[int, int], str] = {sys.version_info[:2]: sys.executable}
    for version in SUPPORTED:
        name = f"{version[0]}.{version[1]}"
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{name}.*/bin/python"), reverse=True)
        for program in (shutil.which(f"python{name}"), *map(str, pyenv)):
            if program is not None and _starts(program):
                programs.setdefault(version, program)
    return {version: programs[version] for version in SUPPORTED if version in programs}


def _starts(program: str) -> bool:
    """Whether a program starts; a shim of pyenv exists even where its version does not run."""
    return subprocess.run([program, "--version"], capture_output=True).returncode == 0


def attempt(wheel: Path, python: str, program: str, *, packages: str, torch: str) -> str:
    """Installs and tries one combination; returns the error, or an empty string.

    Args:
        wheel: The wheel of broca.
        python: The version of Python, such as "3.13".
        program: The executable of that Python.
        packages: "lowest" or "newest".
        torch: The version of torch.
    """
    folder = OUT / f"{python}-{packages}"
    pins = lower_bounds(ROOT / "pyproject.toml", python) if packages == "lowest" else {}
    pins["torch"] = torch
    OUT.mkdir(parents=True, exist_ok=True)
    constraints = OUT / f"{folder.name}.txt"
    constraints.write_text("".join(f"{package}=={pin}\n" for package, pin in pins.items()))
    try:
        bin_ = environment(folder, program)
        # without --quiet, because pip then names the packages whose versions conflict
        run(bin_ / "python", "-m", "pip", "install", "--progress-bar=off", "-c", constraints, wheel)
        run(bin_ / "python", "-m", "pip", "check")
        try_out(bin_, folder / "trial")
    except RuntimeError as error:
        return str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def main() -> None:
    """Tries every combination and exits with code 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--torch", default=pinned_torch(ROOT / "constraints.txt"))
    parser.add_argument("--python", action="append", help="3.11, ...; default: all that are here")
    parser.add_argument("--packages", choices=("lowest", "newest", "both"), default="both")
    options = parser.parse_args()
    programs = pythons()
    names = {f"{major}.{minor}": program for (major, minor), program in programs.items()}
    for version in SUPPORTED:
        if version not in programs:
            print(f"Python {version[0]}.{version[1]}: not on this machine", flush=True)
    wheel, _ = build(ROOT / "build" / "dist")
    failed = False
    for name in options.python or names:
        for packages in ("lowest", "newest"):
            if options.packages not in (packages, "both"):
                continue
            wrong = attempt(wheel, name, names[name], packages=packages, torch=options.torch)
            print(f"Python {name}, {packages} packages: {wrong or 'ok'}", flush=True)
            failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
