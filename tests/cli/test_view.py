"""`broca view` prints where the index is; it opens no browser for a pipe."""

from cli.running import broca
from reports.test_page import make_result


def test_the_index_is_written(tmp_path):
    """Into the folder that is asked for."""
    make_result().save(tmp_path / "run")
    done = broca("view", tmp_path, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"index: {tmp_path / 'broca-index.html'}"
    assert (tmp_path / "broca-index.html").is_file()
