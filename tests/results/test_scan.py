"""The scan of a model tells what can be ablated and whether its gates hold."""

from broca.results.checks import Check, NotCovered, Scan


def make_scan(**changes):
    """Returns a scan of a model of two heads and an MLP block, one of whose layers has no heads."""
    values = {
        "model": "toy", "description": "2 heads in 2 layers", "architecture": "Toy",
        "fingerprint": "abc", "dtype": "float32", "layers": 2, "kinds": "heads+mlp", "heads": 2,
        "kv_heads": 2, "components": ("L0H0", "L0H1", "L0M"), "norms_across_heads": (),
        "gate_points": ("layers.0.o_proj",),
        "not_covered": (NotCovered(1, "layers.1", "it has no attention"),),
        "without_mlp_block": ((1, "layers.1"),),
        "self_test": (Check("gates of one", True, "0 bits", 0.1),),
        "proved_tokens": 64, "sharing": (Check("prefixes", False, "0.2", 0.1),),
    }  # fmt: skip
    return Scan(**{**values, **changes})


def test_the_self_test_comes_first():
    """The summary starts with the outcome of the self-test, and names what failed."""
    assert make_scan().passed
    assert repr(make_scan()).startswith("every check of the self-test holds")
    failed = make_scan(self_test=(Check("gates of zero", False, "0.5", 0.1),))
    assert not failed.passed
    assert repr(failed).startswith("self-test failed: gates of zero")


def test_every_component_is_a_line():
    """A line has the layer and the number of a component; a block has no number."""
    lines = make_scan().records()
    assert lines[1] == {"component": "L0H1", "kind": "head", "layer": 0, "index": 1}
    assert (lines[2]["kind"], lines[2]["index"]) == ("mlp", None)
