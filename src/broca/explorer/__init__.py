"""The live page: ablates components of a loaded model and shows its answers."""

from broca.explorer.explorer import Explorer
from broca.explorer.subject import ExplorerSubject

__all__ = ["Explorer", "ExplorerSubject"]
