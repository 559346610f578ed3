"""A tracker that records its calls."""

from broca.integrations.tracking import TrackerKind


class Recorder:
    """Calls of methods by name, in their order."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *words, **options: self.calls.append((name, words, options))

    def named(self, name):
        """Returns the arguments of all calls of this name."""
        return [words for called, words, _ in self.calls if called == name]


def recording(name="recorder"):
    """Returns a kind of tracker and the recorder that it makes."""
    recorder = Recorder()
    return TrackerKind(name=name, help="for tests", make=lambda: recorder), recorder
