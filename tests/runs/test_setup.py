"""What every verb does first."""

from dataclasses import replace

import pytest

from broca.errors import BadInput
from broca.options import ExecutorOptions, JournalOptions
from broca.results.codec import encode
from broca.runs.setup import IN_MEMORY, model_and_heads, workspace
from broca.verbs.localize import localize


def test_a_localization_stands_for_its_model_and_its_selection(planted, tmp_path):
    """As an object or as the folder of its run; heads that are named come first."""
    result = localize(
        planted, "mc_biology", others=[], method="one-shot", rows=500, items=5, k=2, verify=False
    )
    (tmp_path / "result.json").write_text(encode(result))
    assert result.selected
    for run in (result, tmp_path, str(tmp_path)):
        assert model_and_heads(run, None) == ("planted", result.selected)
    assert model_and_heads(result, ["L0H3"]) == ("planted", ["L0H3"])
    assert model_and_heads(planted, result) == (planted, result.selected)
    with pytest.raises(BadInput, match="selected nothing: name some in `heads`"):
        model_and_heads(replace(result, selected=()), None)
    with pytest.raises(BadInput, match="does not exist"):
        model_and_heads("planted", None)


def test_a_run_in_memory_says_that_it_cannot_be_resumed(tmp_path, caplog):
    """A run with a journal says nothing, and neither does one in an open workspace."""
    here = ExecutorOptions()
    with workspace(JournalOptions(journal=tmp_path / "j.sqlite"), here) as space:
        assert not space.in_memory
        with workspace(JournalOptions(journal=space), here) as shared:
            assert shared is space
    assert caplog.messages == []
    with workspace(JournalOptions(), here) as space:
        assert space.in_memory
    assert caplog.messages == [IN_MEMORY]
