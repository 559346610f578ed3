"""Public functions stay callable after every module of broca has been imported."""

import pkgutil
from importlib import import_module
from inspect import isclass

import pytest
from verbs.run_folders import localize_into

import broca

FEW = broca.TaskOptions(limit=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a small run."""
    folder = tmp_path_factory.mktemp("run")
    localize_into(
        folder, model="reference-small", task="capitals", method="cs-stratified", rows=200,
        items=8, verify=False, limit=40,
    )  # fmt: skip
    return folder


def explored(model):
    """Returns the description of a model on its live page."""
    with broca.explore(model, port=0) as page:
        return page.explorer.describe()


CALLS = {
    "atlas": lambda model, folder: broca.atlas(
        model, ["capitals", "sorting"], rows=400, items=8, task_options=FEW
    ).tasks,
    "doctor": lambda model, folder: [check.name for check in broca.doctor().checks],
    "chat": lambda model, folder: broca.chat(
        model, ["The capital of"], heads="L0H1", max_new_tokens=4
    ),
    "compare": lambda model, folder: broca.compare(
        model, model, tasks="capitals", items=12, limit=10, rows=120
    ).effects,
    "describe_task": lambda model, folder: broca.describe_task("capitals", model=model).items,
    "export": lambda model, folder: broca.export(
        model, folder / "heads", heads="L0H1", kind="heads"
    ).components,
    "inspect_journal": lambda model, folder: broca.inspect_journal(
        folder / "journal.sqlite"
    ).runs,
    "list_tasks": lambda model, folder: broca.list_tasks().names,
    "load": lambda model, folder: broca.load("reference-small", device="cpu").fingerprint,
    "localize": lambda model, folder: broca.localize(
        model, "capitals", others=[], method="one-shot", items=4, verify=False, task_options=FEW
    ).baseline,
    "explore": lambda model, folder: explored(model),
    "plan": lambda model, folder: len(broca.plan(model, "capitals", others=[], sample=4).methods),
    "published_lists": lambda model, folder: len(broca.published_lists()),
    "read": lambda model, folder: broca.read(folder),
    "refit": lambda model, folder: broca.refit(folder, resamples=0),
    "report": lambda model, folder: broca.report(folder),
    "reproduce": lambda model, folder: broca.reproduce(
        "table2", model, tasks="capitals", rows=200, items=10, limit=8, keep_universal=True,
        journal=folder / "tables.sqlite",
    )[0].rows,
    "rerun": lambda model, folder: broca.rerun(folder).grade,
    "scan": lambda model, folder: broca.scan(model).components,
    "stress": lambda model, folder: broca.stress(model, heads="L0H1", pairs=16, sets=1),
    "verify": lambda model, folder: broca.verify(
        model, "sorting", "L0H1", others=[], limit=20,
        scope=broca.Scope(controls=0, curve=0, failure_items=4),
    ).heads,
    "view": lambda model, folder: broca.view(folder, out=folder).read_text(),
}  # fmt: skip
"""A small call of every public function; its result is the same each time."""


def public_functions():
    """Returns the names of the public functions."""
    return {name for name in broca.__all__ if not isclass(getattr(broca, name))}


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported():
    """Imports every module, which makes it an attribute of its package."""
    for package in (broca, import_module("broca.verbs")):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if module.name != "broca.__main__":
                import_module(module.name)


def test_every_public_function_is_called_here():
    """`CALLS` has a call of every public function."""
    assert public_functions() == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_function_can_be_called_twice(name, small, folder):
    """Two calls give the same result, so no module has taken the function's name."""
    first = CALLS[name](small, folder)
    assert first
    assert CALLS[name](small, folder) == first
