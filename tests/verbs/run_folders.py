"""Folders of runs, as the command line makes them, from Python."""

import json
import subprocess
import sys

from broca.runs.folder import RunFolder, folder_workspace
from broca.verbs.localize import localize


def localize_into(folder, **arguments):
    """Localizes and leaves the result, its journal and what was asked in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = {"others": [], "seed": 0, **arguments}
    run_folder = RunFolder.claim(
        folder, verb="localize", asked=asked, how={}, command=["broca", "localize"]
    )
    with folder_workspace(run_folder, goes_on="the same call") as workspace:
        result = localize(**run_folder.arguments, journal=workspace)
        result.save(folder)
    return result


def raise_largest_effect(folder):
    """Changes the result by hand: its largest effect by one per cent."""
    file = folder / "result.json"
    data = json.loads(file.read_text())
    largest = max(data["ranking"], key=lambda head: abs(head["effect"]))
    largest["effect"] *= 1.01
    file.write_text(json.dumps(data))


def assert_no_model_is_loaded(statement):
    """Runs a statement in a process of its own, which must load no model, not even torch."""
    code = (
        "import sys\n"
        "import broca\n"
        f"{statement}\n"
        "assert not {'torch', 'transformers', 'lm_eval'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
