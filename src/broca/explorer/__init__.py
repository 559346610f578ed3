"""The live page: ablates components of a loaded model and shows its answers."""
