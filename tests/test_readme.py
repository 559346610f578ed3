"""What the README shows, runs; what it lists, exists."""

import re
from pathlib import Path

import pytest

import broca
from broca.searches import METHODS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def test_python_example_runs(tmp_path, monkeypatch, capsys):
    """The block is executed as it stands."""
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("('L")
    assert (tmp_path / "broca-out" / "report.html").is_file()


def test_file_tree_matches_the_package():
    """Every room of the tree exists, and every room is in the tree."""
    tree = TEXT[TEXT.index("    src/broca/\n") : TEXT.index("    tests/ ")]
    listed = set(re.findall(r"^ {6}(\w+)(?:/|\.py)", tree, re.MULTILINE))
    present = {
        path.stem
        for path in (ROOT / "src" / "broca").iterdir()
        if not path.name.startswith("__") and path.name != "py.typed"
    }
    assert listed == present - {"errors"}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_in_the_table(method):
    """With its cost."""
    assert f"| `{method}` |" in TEXT


def test_public_names_exist():
    """Everything in `__all__` can be had, and `dir` shows it."""
    for name in broca.__all__:
        assert getattr(broca, name) is not None
    assert set(dir(broca)) == set(broca.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = broca.nothing


def test_linked_files_exist():
    """No link of the README is dead."""
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
