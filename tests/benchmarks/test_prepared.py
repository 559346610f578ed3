"""The settings of a benchmark's process."""

import os


def test_what_the_environment_says_is_not_overwritten(script, monkeypatch):
    """Progress bars and warnings are turned off where the environment says nothing of them."""
    monkeypatch.setenv("TQDM_DISABLE", "0")
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    script("prepared").prepare()
    assert (os.environ["TQDM_DISABLE"], os.environ["TRANSFORMERS_VERBOSITY"]) == ("0", "info")
    del os.environ["TQDM_DISABLE"], os.environ["TRANSFORMERS_VERBOSITY"]
    script("prepared").prepare()
    assert (os.environ["TQDM_DISABLE"], os.environ["TRANSFORMERS_VERBOSITY"]) == ("1", "error")
