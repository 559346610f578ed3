"""A tracker that records its calls."""


class Recorder:
    """Calls by name, in their order; it is the tracker and its only run."""

    def __init__(self):
        self.calls = []

    def __call__(self, project, settings):
        self.calls.append(("begin", (project, settings), {}))
        return self

    def __getattr__(self, name):
        return lambda *words, **options: self.calls.append((name, words, options))

    def named(self, name):
        """Returns the arguments of all calls of this name."""
        return [words for called, words, _ in self.calls if called == name]
