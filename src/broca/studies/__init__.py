"""Studies: users of the public API, nothing more."""
