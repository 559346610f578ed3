"""`broca lm-eval`: lm-eval's own command line with broca's model."""

import functools
import sys

import lm_eval.tasks
import pytest
from cli.running import broca
from harness_tasks import write_tasks_and_model
from lm_eval.tasks import TaskManager

from broca.cli.use import lm_eval as command

NAMES = "L0H1+L0H3+L1H2"


@pytest.mark.long
def test_command_line_of_lm_eval_is_handed_on(tmp_path, monkeypatch, capsys):
    """`broca lm-eval` takes lm-eval's arguments and gives its output, help and errors."""
    only_included = functools.partial(TaskManager, include_defaults=False)
    monkeypatch.setattr(lm_eval.tasks, "TaskManager", only_included)
    monkeypatch.setattr(sys, "argv", ["broca"])
    folder = write_tasks_and_model(tmp_path)
    arguments = [
        "run", "--model", "broca", "--model_args",
        f"pretrained={folder / 'model'},ablate={NAMES}", "--tasks", "choice",
        "--include_path", str(folder), "--limit", "4",
    ]  # fmt: skip
    command(*arguments)
    assert "|acc_norm" in capsys.readouterr().out
    assert sys.argv == ["broca"]
    assert "--model_args" in broca("lm-eval", "run", "--help").stdout
    arguments[4] = "ablat=L0H1"
    refused = broca("lm-eval", *arguments).stderr
    assert "broca: --model_args: argument 'ablat' is unknown; did you mean 'ablate'" in refused
