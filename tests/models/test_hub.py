"""Without a network, models and data of the hub are refused at once."""

import socket

import huggingface_hub
import pytest

from broca.errors import TaskUnusable, UnknownName
from broca.models import checkpoints, load
from broca.tasks import Catalog, RequestTokenizer


@pytest.fixture
def no_network(monkeypatch):
    """A machine on which no name resolves and the hub libraries believe that they are online."""
    import datasets

    def fail(*_args, **_kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(checkpoints, "getproxies", dict)
    monkeypatch.setattr(socket, "create_connection", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    checkpoints.reachable.cache_clear()
    yield
    checkpoints.reachable.cache_clear()


def test_unknown_hub_model_is_refused_at_once(no_network):
    """An unknown model is refused without the hub library's retries, which take half a minute."""
    with pytest.raises(UnknownName, match="could not be read from the hub"):
        load("someone/some-model")
    assert huggingface_hub.constants.HF_HUB_OFFLINE, "the hub library would have retried"


def test_task_with_hub_data_is_refused_at_once(no_network, tiny):
    """A task whose data cannot be read is refused without retries."""
    with pytest.raises(TaskUnusable, match=r"'gsm8k' could not be loaded.*network"):
        Catalog().load("gsm8k", RequestTokenizer(tiny.tokenizer, max_length=tiny.max_length))
    assert huggingface_hub.constants.HF_HUB_OFFLINE, "the hub library would have retried"


def test_proxy_is_taken_for_a_network(no_network, monkeypatch):
    """A proxy counts as a network, because names need not resolve behind it."""
    monkeypatch.setattr(checkpoints, "getproxies", lambda: {"https": "http://proxy:3128"})
    assert checkpoints.reachable()
