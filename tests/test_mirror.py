"""`tests/` mirrors the package: every module has a test file of the same name."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "broca"

EXCEPTIONS = {
    "__main__.py": "calls the entry point, which test_main.py and every test of a process run",
}
"""Modules without a test file, each with its reason."""


def modules():
    """Returns the paths of all modules within the package; an `__init__` only re-exports names."""
    return sorted(
        path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"
    )


def test_every_module_has_a_test_file_of_its_name():
    """`src/broca/a/b.py` is tested in `tests/a/test_b.py`, which holds tests."""
    without = [
        str(module)
        for module in modules()
        if str(module) not in EXCEPTIONS and not has_tests(module)
    ]
    assert not without


def has_tests(module):
    """Returns whether the test file of a module exists and holds a test."""
    file = ROOT / "tests" / module.parent / f"test_{module.name}"
    return file.is_file() and "\ndef test_" in file.read_text(encoding="utf-8")


def test_exceptions_are_modules_without_tests():
    """Every exception is an existing module without tests."""
    for module in EXCEPTIONS:
        assert (PACKAGE / module).is_file(), module
        assert not has_tests(Path(module)), module


def test_the_package_has_at_most_eight_loose_files():
    """A reader of `ls src/broca` sees packages, and few files beside them."""
    loose = [path.name for path in PACKAGE.iterdir() if path.is_file()]
    assert len(loose) <= 8, loose
