"""A tracker, and a stand-in for its library, that records its calls."""


class Recorder:
    """Keeps calls of any name in their order; what a call returns records on."""

    def __init__(self):
        self.calls = []

    def begin(self, project, settings):
        """Begins the run."""
        self.calls.append(("begin", (project, settings), {}))
        return self

    def __getattr__(self, name):
        return lambda *words, **options: self.calls.append((name, words, options)) or self

    def named(self, name):
        """Returns the arguments of all calls of this name."""
        return [words for called, words, _ in self.calls if called == name]
