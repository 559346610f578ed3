"""The shapes of everything that is written."""
