"""A run: its model, its tasks, its measuring, its folder."""
