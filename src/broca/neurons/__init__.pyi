"""The public functions, for type checkers."""

from broca.verbs.neurons import erase as erase
from broca.verbs.neurons import locate as locate
