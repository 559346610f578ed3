"""Compiles each of lm-eval's prompt templates once.

lm-eval compiles a task's Jinja templates again for every document and every score, which takes
longer than running a small model. Within this context its environment caches them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_TEMPLATES = 4096


@lru_cache(maxsize=_TEMPLATES)
def _compiled(environment: Any, source: str) -> Any:
    return type(environment).from_string(environment, source)


@contextmanager
def compiled_once() -> Iterator[None]:
    """Makes lm-eval reuse compiled templates, for the time of the context."""
    from lm_eval.utils import env

    def from_string(source: str, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return type(env).from_string(env, source, *args, **kwargs)
        return _compiled(env, source)

    before = env.__dict__.get("from_string")
    env.from_string = from_string
    try:
        yield
    finally:
        if before is None:
            del env.from_string
        else:
            env.from_string = before
