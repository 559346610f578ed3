"""Fixtures shared by all tests."""

from __future__ import annotations

import os

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch

from broca.models import GatedModel, load
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
