"""Process settings are made where they apply and never override the user's."""

import os
import subprocess
import sys

import pytest

import broca
from broca.executors.process import tune_process


def test_spin_count_of_the_user_is_kept(monkeypatch):
    """`GOMP_SPINCOUNT` keeps the user's value, and is 2000 if unset."""
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    tune_process()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    tune_process()
    assert os.environ["GOMP_SPINCOUNT"] == "2000"


@pytest.mark.parametrize("torch_is_there", [False, True])
def test_a_program_whose_torch_broca_imports_spins_briefly(monkeypatch, torch_is_there):
    """`GOMP_SPINCOUNT` is set before broca imports torch, and left alone if torch is imported."""
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    if not torch_is_there:
        monkeypatch.delitem(sys.modules, "torch")
    assert callable(broca.load)
    assert os.environ.get("GOMP_SPINCOUNT") == (None if torch_is_there else "2000")


def test_other_systems_are_left_alone(monkeypatch):
    """Outside Linux no C library is opened for memory settings."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("ctypes.CDLL", lambda *_: 1 / 0)
    tune_process()
    assert "GOMP_SPINCOUNT" in os.environ


def test_tuned_process_computes():
    """A tuned process allocates and frees large arrays without an error."""
    code = (
        "from broca.executors.process import tune_process; tune_process(); import numpy as np; "
        "print(sum(int(np.ones(10**7)[-1]) for _ in range(5)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "5\n"
