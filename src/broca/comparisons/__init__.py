"""Comparisons of models and runs on the same masks and items."""
