"""After SIGKILL in the middle of a comparison, the same call ends with the same cells."""

from functools import partial

import pytest
from dying import killed_in_stage

import broca

FEW = {
    "methods": ["one-shot", "focus"], "tasks": ["capitals"], "others": ["rhyming"],
    "budgets": [300], "items": 12, "report_items": 20, "exhaustive": 0,
}  # fmt: skip


@pytest.mark.long
def test_a_killed_comparison_goes_on_with_the_same_cells(planted, tmp_path):
    """The resumed call runs only the unfinished cell, and all cells equal an undisturbed run's."""
    call = partial(broca.compare_methods, planted, **FEW, out=tmp_path / "killed")
    killed_in_stage(call, "planted, cell 2 of 2: focus")
    undisturbed = broca.compare_methods(planted, **FEW, out=tmp_path / "whole")
    resumed = call()
    assert (resumed.ran, undisturbed.ran) == (1, 2)
    untimed = [
        [{**vars(cell), "seconds": 0} for cell in comparison.cells]
        for comparison in (resumed, undisturbed)
    ]
    assert untimed[0] == untimed[1]
    assert untimed[0][1]["selected"] or untimed[0][1]["reason"]
