"""`broca plan` prints a line for each method, or JSON, and refuses bad input."""

import json

from cli.running import assert_refused, broca

from broca.searches import METHODS

FEW = ("reference-small", "--task", "sorting", "--others", "capitals", "--items", 8, "--sample", 4)


def test_every_method_has_a_line():
    """A method has its rows or the reason why it cannot run; a last line states the timing."""
    done = broca("plan", *FEW, "--rows", 300)
    assert done.returncode == 0, done.stderr
    assert "search for sorting in reference-small: 48 components" in done.stdout
    for method in METHODS:
        assert any(method in line.split() for line in done.stdout.splitlines()), method
    assert "too few" in done.stdout
    assert "from 8 timed rows" in done.stdout


def test_json_is_the_result():
    """`--json` prints the cost estimate, and nothing else, on stdout."""
    data = json.loads(broca("plan", *FEW, "--json").stdout)
    assert data["kind"] == "cost estimate"
    rows = {method["method"]: method["rows"] for method in data["methods"]}
    assert rows["one-shot"] == 49 * 8


def test_bad_input_is_one_line():
    """Bad input is refused in one line, with parameters named as flags."""
    assert_refused(broca("plan", *FEW[:-1], 0), "--sample must be at least 1")
