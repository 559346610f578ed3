"""Frozen option classes: the sentence under a field is its `--help`."""
