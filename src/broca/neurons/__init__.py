"""Feed-forward neurons: which of them carry what a data set has in common."""
