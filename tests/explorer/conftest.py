"""An explorer for the tests of its page, called directly and over HTTP."""

from contextlib import closing

import pytest

import broca
from broca.explorer.explorer import Explorer, ExplorerSubject
from broca.options import RunOptions


@pytest.fixture(scope="module")
def explorer(planted):
    """An explorer on the planted model, with the selection of a run."""
    subject = ExplorerSubject(
        "/somewhere/planted", {"needed": ("L0H1",)}, {"L0H1": -0.5}, "effect", ("sorting",)
    )
    with closing(Explorer(planted, subject, RunOptions(), verify=broca.verify)) as page_explorer:
        yield page_explorer
