"""Exports models without some components in forms that other libraries load."""
