"""Models, heads, workspaces and sessions that the verbs share, and the model of a result."""

from dataclasses import replace

import pytest
from journals import totals
from tiny import tiny_gated

from broca import Workspace, localize
from broca.errors import BadInput
from broca.options import ExecutorOptions, JournalOptions, SourceOptions
from broca.results.files import encode
from broca.runs.run import model_info
from broca.runs.session import IN_MEMORY, is_run, model_and_heads, open_workspace


def test_a_localization_stands_for_its_model_and_its_selection(planted, tmp_path):
    """A localization gives its model and selection, as an object or a folder; named heads win."""
    result = localize(
        planted, "mc_biology", others=[], method="one-shot", rows=500, items=5, k=2, verify=False
    )
    (tmp_path / "result.json").write_text(encode(result))
    assert result.selected
    for run in (result, tmp_path, str(tmp_path)):
        assert model_and_heads(run, None) == ("planted", result.selected, result.model)
        assert model_and_heads(run, ["L0H3"]) == ("planted", ("L0H3",), result.model)
    assert [is_run(one) for one in (result, tmp_path, "planted")] == [False, True, False]
    assert model_and_heads(planted, result) == (planted, result.selected, None)
    with pytest.raises(BadInput, match="selected nothing: name some in `heads`"):
        model_and_heads(replace(result, selected=()), None)
    with pytest.raises(BadInput, match="not a folder of a run"):
        model_and_heads("planted", None)


def test_a_workspace_of_the_caller_stays_open(caplog):
    """A call with an open workspace closes no journal and cannot set another executor."""
    own = ExecutorOptions(batch_limit=60)
    with Workspace(executor=own) as shared:
        for executor in (own, ExecutorOptions()):
            with open_workspace(JournalOptions(journal=shared), executor) as used:
                assert used is shared
        assert totals(shared.journal)["rows"] == 0
        with (
            pytest.raises(BadInput, match="`executor` belongs to the workspace"),
            open_workspace(JournalOptions(journal=shared), ExecutorOptions(executor="ray")),
        ):
            pass
    assert caplog.messages == []


def test_a_workspace_of_one_call_is_closed_with_it(tmp_path, caplog):
    """The next call may open the same file; without a file, the call says what that means."""
    path = tmp_path / "j.sqlite"
    for journal, warns in ((path, True), (path, True), (None, False), (None, True)):
        assert caplog.messages == []
        options = JournalOptions(journal=journal)
        with open_workspace(options, ExecutorOptions(), warns=warns) as used:
            assert (used.path is None, totals(used.journal)["rows"]) == (journal is None, 0)
            assert used.catalog(SourceOptions()) is used.catalog(SourceOptions())  # built once
    assert caplog.messages == [IN_MEMORY]
    for journal, share in ((path, 1.5), (None, 0.5)):
        with pytest.raises(BadInput, match="share from 0 to 1, and 0 without a `journal`"):
            Workspace(journal, keep_outputs=share)


def test_a_model_is_described_by_its_shape_and_its_weights(tiny):
    """Equal weights under another name have the same fingerprint."""
    info = model_info(tiny)
    assert (info.name, info.layers, info.heads, info.kv_heads) == ("tiny", 2, 4, 2)
    assert (info.architecture, info.dtype) == ("LlamaForCausalLM", "float32")
    assert replace(model_info(tiny_gated("other")), name="tiny") == info
