"""Tests once whether the Hugging Face hub can be reached, to avoid waiting for retries."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path
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


def cached_files(name: str, kind: str, revision: str | None = None) -> list[Path]:
    """Returns the files of a hub repository in the local cache; none if it is not cached.

    Args:
        name: Id of the repository.
        kind: `model` or `dataset`.
        revision: Branch, tag or commit; the main branch by default.
    """
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE, f"{kind}s--{name.replace('/', '--')}")
    reference = folder / "refs" / (revision or "main")
    commit = reference.read_text().strip() if reference.is_file() else (revision or "")
    snapshot = folder / "snapshots" / commit
    if not commit or not snapshot.is_dir():
        return []
    files = [path for path in snapshot.rglob("*") if path.is_file()]
    return [reference, *files] if reference.is_file() else files
