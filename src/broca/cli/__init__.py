"""The command line `broca`, with a command for each verb."""

from broca.cli.main import main

__all__ = ["main"]
