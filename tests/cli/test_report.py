"""`broca report` prints the files that it wrote."""

from cli.running import assert_refused, broca
from results.samples import make_result


def test_figures_are_written_for_a_paper(tmp_path):
    """`--figures` writes the figures in the requested format and prints their paths."""
    make_result().save(tmp_path / "run")
    done = broca("report", tmp_path / "run", "--figures", tmp_path / "f", "--format", "svg",
                 "--width", "column")  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = [line.rsplit("/", 1)[-1] for line in done.stdout.splitlines()]
    assert names == ["components.svg", "scores.svg"]
    assert (tmp_path / "f" / "scores.svg").is_file()


def test_an_unknown_format_is_refused(tmp_path):
    """An unknown format is refused in one line that names the flag."""
    make_result().save(tmp_path)
    done = broca("report", tmp_path, "--figures", tmp_path, "--format", "gif")
    assert_refused(done, '"gif" for --format')
