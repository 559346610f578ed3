"""Executors: run the engine in this process, or in workers of a Ray cluster."""
