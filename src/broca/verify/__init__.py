"""The proof of a selection, on items that the search never saw."""

from broca.verify.proof import Proof, prove

__all__ = ["Proof", "prove"]
