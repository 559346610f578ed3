"""Folders of runs, as the command line makes them, from Python."""

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
