"""Measures observations in this process without a run and a journal."""

from types import SimpleNamespace


def observer(model):
    """Returns the equivalent of `run.observe` for a model."""
    engine = SimpleNamespace(model=model, observed_tokens=0)
    return lambda observations: type(observations[0]).observe(engine, observations)
