"""Studies, which use only the public API."""
