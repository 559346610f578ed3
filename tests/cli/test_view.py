"""`broca view` writes an index of results and prints its path."""

from cli.running import broca
from results.samples import make_result


def test_the_index_is_written(tmp_path):
    """The index is written to the folder of `--out`."""
    make_result().save(tmp_path / "run")
    done = broca("view", tmp_path, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"index: {tmp_path / 'broca-index.html'}"
    assert (tmp_path / "broca-index.html").is_file()
