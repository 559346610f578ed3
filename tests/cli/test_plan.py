"""`broca plan` prints a line for each method, or JSON, and refuses bad input."""

from cli.running import broca

from broca.searches import METHODS

FEW = ("reference-small", "--task", "sorting", "--others", "capitals", "--items", 8, "--sample", 4)


def test_every_method_has_a_line():
    """A method has its rows or the reason why it cannot run; a last line states the timing."""
    done = broca("plan", *FEW, "--rows", 300)
    assert done.returncode == 0, done.stderr
    assert "can search for sorting in reference-small: 48 components" in done.stdout
    for method in METHODS:
        assert any(method in line.split() for line in done.stdout.splitlines()), method
    assert "too few" in done.stdout
    assert "from 8 timed rows" in done.stdout
