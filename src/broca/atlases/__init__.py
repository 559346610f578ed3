"""Findings of a matrix of effects: universal components, selections, clusters."""

from broca.atlases.findings import find, keep_to_groups

__all__ = ["find", "keep_to_groups"]
