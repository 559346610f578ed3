"""Executors by name, and the settings of their processes."""

import os
import sys

import pytest

import broca
from broca.errors import BadInput, MissingExtra
from broca.executors.process import tune_process


def test_what_needs_ray_is_refused_before_a_model_is_loaded(monkeypatch):
    """What workers alone take, an unknown executor and a missing Ray are refused."""
    monkeypatch.setitem(sys.modules, "ray", None)
    for wrong, message in (
        ({"address": "auto"}, "`address` needs `executor` ray"),
        ({"workers": 3}, "`workers` needs `executor` ray"),
        ({"gpus_per_worker": 0.5}, "`gpus_per_worker` needs `executor` ray"),
        ({"executor": "slurm"}, "'slurm' is unknown: use local, ray"),
        ({"executor": "ray"}, r"pip install 'broca\[ray\]'"),
    ):
        with pytest.raises((BadInput, MissingExtra), match=message):
            broca.localize("no-such-model", task="addition", **wrong)


@pytest.mark.parametrize(("torch_is_there", "kept"), [(False, "2000"), (True, None)])
def test_waiting_threads_spin_briefly(monkeypatch, torch_is_there, kept):
    """`GOMP_SPINCOUNT` is set before broca imports torch; a user's value stays."""
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    if not torch_is_there:
        monkeypatch.delitem(sys.modules, "torch")
    assert callable(broca.load)
    assert os.environ.get("GOMP_SPINCOUNT") == kept
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())  # a C library without `mallopt`
    tune_process()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
