"""A run: its set-up, its measuring, its folder."""
