"""Tests once whether the Hugging Face hub can be reached, to avoid waiting for retries."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from urllib.parse import urlsplit
from urllib.request import getproxies

from broca.options import OFFLINE

_SECONDS = 5.0


@cache
def reachable() -> bool:
    """Whether a connection to the hub can be opened; True behind a proxy, where this is unknown."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    if getproxies():
        return True
    address = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        with socket.create_connection(
            (address.hostname or "", address.port or 443), timeout=_SECONDS
        ):
            return True
    except OSError:
        return False


def go_offline() -> None:
    """Forbids all network calls of this process; files in the local cache can still be used."""
    os.environ.update(OFFLINE)
    reachable.cache_clear()
    if {"datasets", "huggingface_hub"} & set(sys.modules):  # they have already read the environment
        skip_retries_if_unreachable()


def skip_retries_if_unreachable() -> None:
    """Sets the hub libraries to offline mode if there is no network; the cache works."""
    if reachable():
        return
    import datasets
    import huggingface_hub

    huggingface_hub.constants.HF_HUB_OFFLINE = True
    datasets.config.HF_HUB_OFFLINE = True
