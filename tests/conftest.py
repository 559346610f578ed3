"""Fixtures shared by all tests."""

from __future__ import annotations

import functools
import os
import pickle

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
from filelock import FileLock

from broca.models import GatedModel, load
from broca.tasks import catalog
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture(scope="session", autouse=True)
def _one_thread_each() -> None:
    """Tests run in parallel processes: one thread each keeps them from slowing each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny() -> GatedModel:
    """A gated Llama of random weights: 2 layers, 4 heads on 2 KV heads."""
    return GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")


@pytest.fixture(scope="session")
def reference() -> GatedModel:
    """The shipped model `reference`."""
    return load("reference", device="cpu")


@pytest.fixture(scope="session")
def planted() -> GatedModel:
    """The shipped model `planted`."""
    return load("planted", device="cpu")


@pytest.fixture(scope="session", autouse=True)
def full_manager(tmp_path_factory):
    """Gives lm-eval's own task manager when it is called.

    Listing its fourteen thousand files takes ten seconds: one of the test processes does it for
    all, and only where a test needs it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    list_files = catalog._harness_manager

    @functools.cache
    def listed():
        file = folder / "lm-eval-tasks.pickle"
        with FileLock(file.with_suffix(".lock")):
            if not file.exists():
                file.write_bytes(pickle.dumps(list_files()))
            return pickle.loads(file.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_harness_manager", listed)
        yield listed
