"""The model of the neuron verbs' tests, loaded once."""

import pytest

import broca


@pytest.fixture(scope="session")
def small():
    """The shipped model `reference-small` with its neurons."""
    return broca.load("reference-small", device="cpu", components="neurons")
