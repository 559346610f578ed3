"""Folders of runs, made from Python as the command line makes them."""

import json
import subprocess
import sys

from broca.options import LocalizeOptions
from broca.runs.folder import RunFolder, kept_workspace
from broca.verbs.localize import localize


def localize_into(folder, *, command=("broca", "localize"), **keywords):
    """Runs `localize` and leaves the result, its journal and its options in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    options = LocalizeOptions.of({"others": [], **keywords})
    run_folder = RunFolder.claim(folder, verb="localize", options=options, command=command)
    with kept_workspace(run_folder, options.run_options, goes_on="the same call") as workspace:
        result = localize(settings=options, journal=workspace)
        result.save(folder, replace=True)
    return result


def raise_largest_effect(folder):
    """Raises the largest effect of a saved result by one per cent."""
    file = folder / "result.json"
    data = json.loads(file.read_text())
    largest = max(data["ranking"], key=lambda head: abs(head["effect"]))
    largest["effect"] *= 1.01
    file.write_text(json.dumps(data))


def assert_no_model_is_loaded(statement):
    """Runs a statement in a new process and asserts that it does not import torch."""
    heavy = "{'torch', 'transformers', 'lm_eval'}"
    code = f"import sys\nimport broca\n{statement}\nassert not {heavy} & set(sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
