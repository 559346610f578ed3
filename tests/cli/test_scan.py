"""`broca scan` lists the components of a model."""

import json

from cli.running import broca


def test_scan_lists_components_and_the_self_test():
    """The text and the JSON agree on the number of components and on the self-test."""
    text = broca("scan", "reference")
    assert text.returncode == 0, text.stderr
    assert "96 heads in 6 layers, 16 query heads on 4 KV heads" in text.stdout
    assert text.stdout.count("self-test ok") == 4
    data = json.loads(broca("scan", "reference", "--json").stdout)
    assert (data["kind"], len(data["components"])) == ("scan", 96)
    assert data["not_covered"] == []
    assert all(check["passed"] for check in data["self_test"])
