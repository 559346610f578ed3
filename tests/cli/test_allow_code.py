"""Executing what a model writes is off by default, and the command line says how to allow it."""

import sys

from cli.running import assert_refused, broca


def test_code_task_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    """A code task is refused in one line that names the option; no result is written."""
    # as in a new process: modules that another test has imported are imported again
    monkeypatch.delenv("HF_ALLOW_CODE_EVAL", raising=False)
    for name in [name for name in sys.modules if name.startswith("lm_eval.tasks.mbpp")]:
        monkeypatch.delitem(sys.modules, name)
    done = broca("localize", "reference-small", "--task", "mbpp", "--others", "", "--out", tmp_path)
    assert_refused(done, r"executes code .*off by default.*--allow-code.*docs/sandbox\.md")
    assert "scoring" not in done.stderr
    assert list(tmp_path.iterdir()) == []
