"""Published head lists and figures, as data."""

from broca.published.lists import (
    PREFIX,
    PublishedList,
    PublishedModel,
    is_published,
    model_like,
    notes,
    published_heads,
    published_lists,
    published_models,
    published_results,
)

__all__ = [
    "PREFIX",
    "PublishedList",
    "PublishedModel",
    "is_published",
    "model_like",
    "notes",
    "published_heads",
    "published_lists",
    "published_models",
    "published_results",
]
