"""The package's metadata and size, its containers, hooks, issue templates and scripts."""

import json
import re
import sys
import tomllib
import zlib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from test_imports import MODULES, imports_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

OF_THE_NOTEBOOK = {"IPython"}
"""Packages that are imported only where a notebook has loaded them."""

DISTRIBUTIONS = {"sklearn": "scikit_learn", "yaml": "pyyaml"}
"""Distributions whose modules have another name, by module."""


@pytest.fixture
def scripts(monkeypatch):
    """Makes the modules in the folder of scripts importable by name."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield
    for name in ("compat", "large_files", "wheels"):
        sys.modules.pop(name, None)


def test_the_wheel_stays_below_8_mb():
    """The compressed files stay below 7.9 MB; `make release` checks the wheel itself."""
    package = ROOT / "src" / "broca"
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in files) < 7_900_000


@pytest.mark.long
def test_commands_of_a_release_work(scripts, tmp_path):
    """The commands that `make release` and `make compat` try work."""
    from wheels import try_out

    try_out(Path(sys.executable).parent, tmp_path)
    assert (tmp_path / "out" / "report.html").is_file()


def test_metadata_says_what_is_supported(scripts):
    """The metadata state the versions that `make compat` tries, the types and the addresses."""
    from compat import SUPPORTED

    named = {tuple(map(int, line.split(" :: ")[-1].split("."))) for line in PROJECT["classifiers"]
             if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)}  # fmt: skip
    assert named == set(SUPPORTED)
    assert PROJECT["requires-python"] == f">=3.{min(SUPPORTED)[1]}"
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "broca" / "py.typed").is_file()
    assert {"Homepage", "Documentation", "Repository", "Changelog"} <= set(PROJECT["urls"])


def test_lower_bounds_are_read(scripts):
    """Every core requirement has a lower bound, which is at most the installed version."""
    from compat import SUPPORTED, lower_bounds, pinned_torch

    packages = {Requirement(line).name for line in PROJECT["dependencies"]}
    for major, minor in SUPPORTED:
        bounds = lower_bounds(ROOT / "pyproject.toml", f"{major}.{minor}")
        assert set(bounds) == packages
    bounds = lower_bounds(ROOT / "pyproject.toml", f"{sys.version_info[0]}.{sys.version_info[1]}")
    for package, bound in bounds.items():
        assert Version(bound) <= Version(version(package)), package
    assert pinned_torch(ROOT / "constraints.txt") in (ROOT / "Dockerfile").read_text()


def test_every_imported_package_is_required():
    """Every imported package is a requirement of the core or of an extra."""
    imported = {name.split(".")[0] for file in MODULES.values() for name in imports_of(file)}
    imported -= {*sys.stdlib_module_names, "broca", *OF_THE_NOTEBOOK}
    lines = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    required = {Requirement(line).name.replace("-", "_") for line in lines}
    assert {DISTRIBUTIONS.get(name, name) for name in imported} <= required


def test_the_changelog_has_the_version():
    """After what is unreleased comes the present version; the last one is 0.1.0."""
    text = (ROOT / "CHANGELOG.md").read_text().replace("## Unreleased\n", "", 1)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0].split()[0] == PROJECT["version"]
    assert [heading.split()[0] for heading in headings][-1] == "0.1.0"


def test_the_repository_is_slim(scripts):
    """The repository tracks no archive of results and no picture above 200 kB."""
    from large_files import refusals, tracked

    assert refusals(tracked(ROOT)) == []


def test_the_dockerfile_is_whole(scripts):
    """The Dockerfile copies existing files, has known extras and no root user."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    words = [line.split(maxsplit=1) for line in lines]
    assert json.loads(words[-1][1]) == ["broca"]
    for word, arguments in words:
        if word == "COPY":
            assert all((ROOT / name).exists() for name in arguments.split()[:-1])
    (extras,) = re.findall(r"\.\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert [arguments for word, arguments in words if word == "USER"][-1] == "1000"
