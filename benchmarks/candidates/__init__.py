"""Search methods under study, which are not part of the package."""
