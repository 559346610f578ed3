"""Progress on one line of stderr."""

from broca.cli.progress import ProgressLine, _figures
from broca.engine import Progress


def test_figures_are_done_rate_tokens_and_time_left():
    """A quarter after two seconds leaves six."""
    text = _figures(Progress(done=1000, total=4000, tokens=50_000), 2.0)
    assert text == "1,000 of 4,000, 500/s, 25,000 tokens/s, 6 s left"


def test_plain_progress_is_one_line_a_stage(capsys):
    """For logs: stages on stderr, nothing rewritten, nothing on stdout."""
    line = ProgressLine(plain=True)
    line("loading", None)
    for done in (1, 2, 3):
        line("searching", Progress(done, 3, 10))
    line.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["loading", "searching"]
