"""`broca report` prints the files that it wrote."""

from cli.running import broca
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
