"""What the file of a task may not do: run code from a template, run on, or fetch from anywhere.

Its Python functions (`!function`) are not confined: who names the folder of a task runs them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import datasets
import lm_eval.utils
from jinja2 import Template
from jinja2.sandbox import SandboxedEnvironment

from broca.errors import BadInput
from broca.limits import time_limit

SECONDS = 10.0
"""Time limit of a template, and of the filters of an answer."""


class _LimitedTemplate(Template):
    """A template whose rendering has a time limit."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        with time_limit(SECONDS, "a template of a task"):
            return super().render(*args, **kwargs)


TEMPLATES: Any = SandboxedEnvironment(
    loader=lm_eval.utils.env.loader,
    undefined=lm_eval.utils.env.undefined,
    keep_trailing_newline=lm_eval.utils.env.keep_trailing_newline,
)
"""jinja's sandbox with lm-eval's filters, in which lm-eval renders from now on."""

TEMPLATES.filters.update(lm_eval.utils.env.filters)
TEMPLATES.template_class = _LimitedTemplate
# lm-eval compiles a template again for every document and score, which takes longer than running a
# small model
TEMPLATES.from_string = lru_cache(4096)(TEMPLATES.from_string)
lm_eval.utils.env = TEMPLATES


@contextmanager
def fetching(allowed: bool, what: str) -> Iterator[None]:
    """Refuses data at addresses within this context, unless they are allowed.

    Raises:
        BadInput: An address is named.
    """
    load = datasets.load_dataset

    def load_dataset(*args: Any, **kwargs: Any) -> Any:
        for address in filter(_is_address, _texts([args, kwargs])):
            raise BadInput(
                f"{what} fetches '{address}', which its file names: allow it with `fetch_urls`"
            )
        return load(*args, **kwargs)

    if not allowed:
        datasets.load_dataset = load_dataset
    try:
        yield
    finally:
        datasets.load_dataset = load


def _is_address(text: str) -> bool:
    return "://" in text and not (text.startswith("hf://") and "::" not in text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
