"""The progress bar of a notebook is shown only under a kernel and is updated in place."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from broca.engine import Progress
from broca.runs import notebook
from broca.runs.progress import silent, usual_report


@pytest.fixture
def kernel(monkeypatch):
    """A kernel of IPython; returns the list of shown and changed displays."""
    shown = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")

    def begin(html, display_id):
        shown.append(("new", html))
        return SimpleNamespace(update=lambda html: shown.append(("changed", html)))

    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    display.display, display.HTML = begin, str
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_outside_of_notebooks_nothing_is_shown(monkeypatch):
    """Without IPython and in its shell, which has no kernel, the report is silent."""
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert usual_report() is silent
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert usual_report() is silent


def test_one_bar_changes_in_its_place(kernel):
    """The bar is updated in place for a new stage and for the last row."""
    report = usual_report()
    report("loading <the model>", None)
    report("searching", Progress(5, 10, 40))
    report("searching", Progress(10, 10, 80))
    assert [kind for kind, _ in kernel] == ["new", "changed", "changed"]
    assert kernel[0][1] == "<div><span>loading &lt;the model&gt;</span></div>"
    assert 'value="10" max="10"' in kernel[-1][1]
    assert kernel[-1][1].endswith("10 of 10 rows</div>")


def test_rows_change_it_seldom(kernel, monkeypatch):
    """Updates within a short time are left out, however many rows are measured."""
    monkeypatch.setattr(notebook.time, "monotonic", lambda: 1.0)
    report = usual_report()
    for done in range(10):
        report("searching", Progress(done, 10, done))
    assert len(kernel) == 1
