"""The verbs of `broca.neurons`, one file each."""
