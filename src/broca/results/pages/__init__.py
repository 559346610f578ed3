"""Results as self-contained pages, tables and figures."""
