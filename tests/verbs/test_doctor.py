"""The diagnosis of a machine, with a remedy for what is missing."""

import importlib
import json
import subprocess
import sys

import pytest

import broca
from broca.verbs import doctor as module


def named(diagnosis, name):
    """Returns the check of this name."""
    return next(check for check in diagnosis.checks if check.name == name)


def test_broca_can_run_where_its_tests_run():
    """All checks are present, and each that failed has a remedy."""
    diagnosis = broca.doctor()
    assert diagnosis.can_run
    names = {check.name for check in diagnosis.checks}
    assert {
        "versions", "torch", "transformers", "lm-eval", "gates", "devices",
        "isolation for code tasks", "ray",
    } <= names  # fmt: skip
    assert not {"dev", "docs"} & names
    for check in diagnosis.checks:
        assert check.description
        assert check.state == "ok" or check.remedy


def test_a_package_that_cannot_be_imported_is_fatal(monkeypatch):
    """The cause is named, and checks that need the package are left out."""
    genuine = importlib.import_module

    def broken(name, *arguments):
        if name == "transformers":
            raise RuntimeError("operator torchvision::nms does not exist\nmore")
        return genuine(name, *arguments)

    monkeypatch.setattr(module, "import_module", broken)
    diagnosis = broca.doctor()
    assert not diagnosis.can_run
    check = named(diagnosis, "transformers")
    assert check.description == "cannot be imported: operator torchvision::nms does not exist"
    assert check.remedy.endswith("pip install -I transformers")
    assert "gates" not in {check.name for check in diagnosis.checks}


@pytest.mark.long
def test_a_broken_numpy_is_reported():
    """Nothing that the diagnosis itself needs imports NumPy."""
    code = (
        "import sys; sys.modules['numpy'] = None; "
        "sys.argv = ['broca', 'doctor', '--json', '--quiet']; "
        "from broca.cli.main import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["numpy"]["state"] == "broken"
    assert done.returncode == 1
    assert "broca cannot run here (numpy" in done.stderr


def test_a_model_that_does_not_load_is_fatal_and_a_missing_sandbox_is_not(monkeypatch):
    """An exception of a check is reported as a failed check, not as a traceback."""

    def fails():
        raise OSError("no such luck")

    monkeypatch.setattr(module, "_gates", fails)
    monkeypatch.setattr(module, "_isolation", fails)
    diagnosis = broca.doctor()
    assert named(diagnosis, "gates").state == "broken"
    assert named(diagnosis, "isolation for code tasks").state == "missing"
    assert not diagnosis.can_run
