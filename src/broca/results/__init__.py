"""The results that verbs return and write."""
