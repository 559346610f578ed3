"""The command `broca`: one command a verb."""

from broca.cli.main import main

__all__ = ["main"]
