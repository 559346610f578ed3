"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

from broca.cli.commands import make_app

app = make_app(
    "neurons",
    "Find the feed-forward neurons that carry what a data set has in common, and test them.",
    {
        verb: f"broca.cli.neurons.commands:{verb}"
        for verb in (
            "locate", "fidelity", "decouple", "overlap", "reliability", "erase", "enhance", "cross",
        )
    },
)  # fmt: skip
