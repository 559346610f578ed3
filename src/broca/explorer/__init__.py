"""The live page: switch components of a loaded model off, and see what it answers."""

from broca.explorer.explorer import Explorer
from broca.explorer.subject import Subject

__all__ = ["Explorer", "Subject"]
