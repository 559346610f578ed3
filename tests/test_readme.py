"""The README's example runs; what README and CONTRIBUTING list exists; addresses agree."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import broca

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com")


@pytest.mark.long
def test_python_example_runs(tmp_path, monkeypatch, capsys):
    """The README's Python block runs as it stands and writes its report."""
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("('L")
    assert (tmp_path / "addition" / "report.html").is_file()


def test_public_names_are_listed():
    """`dir` lists the public names; others raise `AttributeError`."""
    for place in (broca, broca.neurons):
        assert set(dir(place)) == set(place.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = broca.nothing


def test_links_are_absolute_and_alive():
    """Links are absolute for the package index, and those to the repository name existing files."""
    targets = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert targets
    for target in targets:
        assert target.startswith("https://"), target
        for start in (f"{REPOSITORY}/blob/main/", f"{RAW}/main/"):
            if target.startswith(start):
                assert (ROOT / target.removeprefix(start)).is_file(), target


def test_scripts_and_modules_that_documents_name_exist():
    """Paths of Python files in README, CONTRIBUTING and pages are those of the repository."""
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in documents)
    named = set(re.findall(r"(?<![\w./-])(?:[\w-]+/)+\w+\.py\b", text))
    places = (ROOT, ROOT / "src", ROOT / "src" / "broca")
    assert named
    assert [path for path in named if not any((place / path).is_file() for place in places)] == []


def test_pictures_are_small_and_of_the_repository():
    """The README shows one real model, one report and one animation, each under 200 kB."""
    pictures = re.findall(rf"(?:!\[[^]]+\]\(|<img src=\"){RAW}/main/([^)\"]+)[)\"]", TEXT)
    assert [Path(name).name for name in pictures] == ["smollm2.svg", "report.png", "demo.svg"]
    for name in pictures:
        assert (ROOT / name).stat().st_size < 200_000


def test_the_project_has_one_address():
    """Every address of a broca repository is the one in pyproject.toml."""
    for name in ("README.md", "CITATION.cff", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        named = re.findall(r"https://(?:raw\.githubusercontent|github)\.com/[\w.-]+/broca\b", text)
        assert set(named) <= {REPOSITORY, RAW}, name


def test_the_citation_is_of_this_version():
    """CITATION.cff has the version, the licence and both papers."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == REPOSITORY
    papers = [paper["identifiers"][0]["value"] for paper in citation["references"]]
    assert papers == ["arXiv:2603.03335", "arXiv:2502.20992"]
