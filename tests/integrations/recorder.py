"""A tracker that records its calls."""

from broca.integrations import TrackerKind


class Recorder:
    """A run of a tracker that keeps its calls by name, in their order."""

    def __init__(self):
        self.calls = []

    @property
    def kind(self):
        """The tracker whose run this is."""
        return TrackerKind("recorder", self._begun)

    def _begun(self, project, settings):
        self.calls.append(("begin", (project, settings), {}))
        return self

    def __getattr__(self, name):
        return lambda *words, **options: self.calls.append((name, words, options))

    def named(self, name):
        """Returns the arguments of all calls of this name."""
        return [words for called, words, _ in self.calls if called == name]
