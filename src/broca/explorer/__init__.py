"""The live page: ablates components of a loaded model and shows its answers."""

from broca.explorer.explorer import Explorer, ExplorerSubject

__all__ = ["Explorer", "ExplorerSubject"]
