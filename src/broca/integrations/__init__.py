"""broca within other tools."""
