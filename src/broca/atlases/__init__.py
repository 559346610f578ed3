"""Findings of a matrix of effects: universal components, selections, clusters."""
